import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What connections of plain HTTP may take together. Those of agents leave them when their upgrade is worked on. */
export interface SocketLimits {
  /** Connections at once; some 10 KB each. */
  sockets: number
  /** Requests at once, from their head to the last byte of their answer. */
  requests: number
  /** How long a finished answer may take to be read. */
  answerMs: number
}

export const SOCKET_LIMITS: SocketLimits = { sockets: 10_000, requests: 4_000, answerMs: 60_000 }

export interface SocketBound {
  /** The connection is upgraded, and counts no longer. */
  release(socket: Socket): void
}

interface Exchange {
  socket: Socket
  outgoing: ServerResponse
  startedAt: number
}

/**
 * Keeps the connections of a server within bounds, by closing those that cost most and do least: over the bound of
 * connections the one that has waited longest without a request, over that of requests the oldest whose answer is
 * finished and not read. So whoever comes is served, and whoever holds many connections loses them.
 *
 * @param checkMs how often answers that are not read are looked for
 */
export function boundSockets(server: Server, limits: SocketLimits, checkMs: number): SocketBound {
  /** Requests of each connection of this server that are not answered. What has no number here is not its own. */
  const asked = new WeakMap<Socket, number>()
  /** Without a request; in the order in which they began to wait. */
  const waiting = new Set<Socket>()
  /** In the order in which they began. */
  const exchanges = new Set<Exchange>()
  let open = 0

  server.on('connection', onConnection)
  server.on('request', onRequest)
  server.on('checkExpectation', onRequest)
  server.on('upgrade', (_request, socket: Socket) => begin(socket))
  const timer = setInterval(cutUnread, checkMs).unref()
  server.on('close', () => clearInterval(timer))
  return { release: socket => forget.call(socket) }

  function onConnection(socket: Socket): void {
    open++
    asked.set(socket, 0)
    waiting.add(socket)
    socket.once('close', forget)
    if (open <= limits.sockets) return
    const [longest] = waiting
    longest!.destroy()
    forget.call(longest!)
  }

  /** When a connection closed, was cut, or became an agent's. */
  function forget(this: Socket): void {
    this.off('close', forget)
    waiting.delete(this)
    // Once: requests that came before an upgrade may be answered after it.
    if (asked.delete(this)) open--
  }

  function onRequest({ socket }: IncomingMessage, outgoing: ServerResponse): void {
    const exchange = { socket, outgoing, startedAt: performance.now() }
    begin(socket)
    exchanges.add(exchange)
    outgoing.once('close', () => {
      exchanges.delete(exchange)
      end(socket)
    })
    if (exchanges.size > limits.requests) oldestUnread()?.socket.destroy()
  }

  function begin(socket: Socket): void {
    const count = asked.get(socket)
    if (count === undefined) return
    asked.set(socket, count + 1)
    waiting.delete(socket)
  }

  function end(socket: Socket): void {
    const count = asked.get(socket)
    if (count === undefined) return
    asked.set(socket, count - 1)
    if (count === 1 && !socket.destroyed) waiting.add(socket)
  }

  function oldestUnread(): Exchange | undefined {
    for (const exchange of exchanges) if (exchange.outgoing.writableEnded) return exchange
    return undefined
  }

  function cutUnread(): void {
    const latest = performance.now() - limits.answerMs
    for (const { socket, outgoing, startedAt } of exchanges) {
      if (startedAt > latest) return
      if (outgoing.writableEnded) socket.destroy()
    }
  }
}
