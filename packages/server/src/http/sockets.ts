import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What connections of plain HTTP may take together. Those of agents leave them when their upgrade is worked on. */
export interface SocketLimits {
  /** Connections at once; some 10 KB each. */
  sockets: number
  /** Bytes of answers that were written and not taken by the network, of all connections together. */
  unreadBytes: number
  /** How long a connection may have such bytes without a pause. */
  unreadMs: number
}

export const SOCKET_LIMITS: SocketLimits = {
  sockets: 10_000,
  unreadBytes: 64 * 1024 * 1024,
  unreadMs: 60_000,
}

export interface SocketBound {
  /** The connection has a request under way again: one that was pipelined. */
  resume(socket: Socket): void
  /** The connection is upgraded, and counts no longer. */
  release(socket: Socket): void
}

/**
 * Keeps the connections of a server within bounds, by closing those that cost most and do least: over the bound of
 * connections the one that has waited longest without a request, over that of unread bytes the one with most of them.
 * So new connections are served, and a client that holds many of them loses them.
 *
 * Every request passes here, so what it costs counts: idle connections are kept in order, and bytes are added up by a
 * timer and not by request.
 *
 * @param checkMs how often answers that are not read are looked for
 */
export function boundSockets(server: Server, limits: SocketLimits, checkMs: number): SocketBound {
  const open = new Set<Socket>()
  /** Without a request; in the order in which they began to wait. */
  const idle = new Set<Socket>()
  /** Since when a connection has had unread bytes, by `performance.now()`. */
  let unreadSince = new Map<Socket, number>()

  server.on('connection', onConnection)
  server.on('request', onRequest)
  server.on('checkExpectation', onRequest)
  server.on('upgrade', (_request, socket: Socket) => idle.delete(socket))
  const timer = setInterval(cutUnread, checkMs).unref()
  server.on('close', () => clearInterval(timer))
  return { resume: socket => idle.delete(socket), release: socket => forget.call(socket) }

  function onConnection(socket: Socket): void {
    open.add(socket)
    idle.add(socket)
    socket.once('close', forget)
    if (open.size <= limits.sockets) return
    const [longest] = idle
    longest!.destroy()
    forget.call(longest!)
  }

  /** When a connection closed, was cut, or became an agent's. */
  function forget(this: Socket): void {
    this.off('close', forget)
    open.delete(this)
    idle.delete(this)
  }

  function onRequest({ socket }: IncomingMessage, outgoing: ServerResponse): void {
    idle.delete(socket)
    // One function for all, and not a closure for each: a tenth of what a request costs would go into it.
    outgoing.on('close', onAnswered)
  }

  function onAnswered(this: ServerResponse): void {
    const { socket } = this.req
    if (open.has(socket)) idle.add(socket)
  }

  function cutUnread(): void {
    const now = performance.now()
    const stillUnread = new Map<Socket, number>()
    let bytes = 0
    for (const socket of open) {
      if (socket.writableLength === 0) continue
      const since = unreadSince.get(socket) ?? now
      if (now - since > limits.unreadMs) socket.destroy()
      else {
        stillUnread.set(socket, since)
        bytes += socket.writableLength
      }
    }
    unreadSince = stillUnread
    if (bytes > limits.unreadBytes) cutLargest([...stillUnread.keys()], bytes - limits.unreadBytes)
  }

  function cutLargest(sockets: Socket[], excess: number): void {
    let left = excess
    for (const socket of sockets.sort((a, b) => b.writableLength - a.writableLength)) {
      if (left <= 0) return
      left -= socket.writableLength
      socket.destroy()
    }
  }
}
