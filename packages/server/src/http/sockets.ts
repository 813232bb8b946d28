import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { NOISY_REFUSED_ABOVE } from './connection-guard.ts'
import { createEntry, type Entry, LinkedList } from './linked-list.ts'

/** Limits of all HTTP connections together. Connections of agents no longer count once their upgrade is handled. */
export interface SocketLimits {
  /** Maximum number of open connections; about 10 KB each. */
  sockets: number
  /** Maximum number of bytes of responses in the send buffers of all connections together. */
  unreadBytes: number
  /** How long the send buffer of a connection may be non-empty without interruption. */
  unreadMs: number
  /**
   * Number of new connections in a tenth of a second above which further ones are closed if they come from networks of
   * which many requests were refused lately.
   */
  noisyRefusedAbove: number
}

export const SOCKET_LIMITS: SocketLimits = {
  sockets: 10_000,
  unreadBytes: 64 * 1024 * 1024,
  unreadMs: 60_000,
  noisyRefusedAbove: NOISY_REFUSED_ABOVE,
}

export interface SocketLimiter {
  /** Must be called when a pipelined request starts: the connection is no longer idle. */
  resume(socket: Socket): void
  /** Must be called for a connection that is being upgraded: these limits no longer apply to it. */
  release(socket: Socket): void
  /** Whether a connection exists from which nothing has been read yet. */
  awaitsFirstRequest(): boolean
}

/**
 * Limits the connections of a server. If there are too many, it closes the one that has been idle for longest: the new
 * one only if all others have a request. It closes connections that have had unread response bytes for too long and, if
 * clients have left too many bytes unread, those with the most. So a client with many connections loses its own.
 *
 * Cheap per request: idle connections are kept in order, and unread bytes are summed by a timer.
 *
 * @param checkMs interval of the check for unread responses
 * @param onUnanswered called for each connection that closed before the headers of a first response were sent, unless
 *   these limits closed it as the longest idle one, or it was upgraded
 */
export function limitSockets(
  server: Server,
  limits: SocketLimits,
  checkMs: number,
  onUnanswered: (socket: Socket) => void = () => {},
): SocketLimiter {
  /**
   * Open connections, each with its entry for the list `idleSockets`. The entry is in the list while the connection has
   * no request.
   */
  const openSockets = new Map<Socket, Entry<Socket>>()
  /** Connections that have not been sent a response yet, with the response in progress, if any. */
  const unansweredSockets = new Map<Socket, ServerResponse | null>()
  /** Connections without a request, the longest idle first. */
  const idleSockets = new LinkedList<Socket>()
  /** When a check first found bytes of a connection that its client does not read, by `performance.now()`. */
  let unreadSince = new Map<Socket, number>()

  server.on('connection', onConnection)
  server.on('request', onRequest)
  server.on('checkExpectation', onRequest)
  server.on('upgrade', (_request, socket: Socket) => resume(socket))
  const timer = setInterval(closeSlowReaders, checkMs).unref()
  server.on('close', () => clearInterval(timer))
  return {
    resume,
    release,
    awaitsFirstRequest: () => [...idleSockets].some(socket => socket.bytesRead === 0),
  }

  function onConnection(socket: Socket): void {
    const entry = createEntry(socket)
    openSockets.set(socket, entry)
    idleSockets.append(entry)
    unansweredSockets.set(socket, null)
    socket.once('close', onClose)
    if (openSockets.size <= limits.sockets) return
    const longestIdle = idleSockets.first!.value
    longestIdle.destroy()
    release(longestIdle)
  }

  function onClose(this: Socket): void {
    // A response whose headers were sent counts as an answer even if its body is incomplete, since clients may close
    // streams at any time.
    if (unansweredSockets.has(this) && !unansweredSockets.get(this)?.headersSent) onUnanswered(this)
    release(this)
  }

  function release(socket: Socket): void {
    socket.off('close', onClose)
    resume(socket)
    openSockets.delete(socket)
    unansweredSockets.delete(socket)
  }

  function resume(socket: Socket): void {
    const entry = openSockets.get(socket)
    if (entry) idleSockets.remove(entry)
  }

  function onRequest({ socket }: IncomingMessage, outgoing: ServerResponse): void {
    resume(socket)
    if (unansweredSockets.has(socket)) unansweredSockets.set(socket, outgoing)
    // One function for all requests: a closure per request would add a tenth to the cost of a request.
    outgoing.on('close', onResponseClose)
  }

  function onResponseClose(this: ServerResponse): void {
    const { socket } = this.req
    if (this.writableFinished) unansweredSockets.delete(socket)
    const entry = openSockets.get(socket)
    if (entry && !entry.isLinked) idleSockets.append(entry)
  }

  function closeSlowReaders(): void {
    const now = performance.now()
    const nextUnreadSince = new Map<Socket, number>()
    let bytes = 0
    for (const socket of openSockets.keys()) {
      if (socket.writableLength === 0) continue
      const since = unreadSince.get(socket) ?? now
      if (now - since > limits.unreadMs) socket.destroy()
      else {
        nextUnreadSince.set(socket, since)
        bytes += socket.writableLength
      }
    }
    unreadSince = nextUnreadSince
    if (bytes > limits.unreadBytes) closeMostUnread([...nextUnreadSince.keys()], bytes - limits.unreadBytes)
  }

  function closeMostUnread(sockets: Socket[], excess: number): void {
    let remaining = excess
    for (const socket of sockets.sort((a, b) => b.writableLength - a.writableLength)) {
      if (remaining <= 0) return
      remaining -= socket.writableLength
      socket.destroy()
    }
  }
}
