import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const WINDOW_MS = 100
/** If a window has more new connections than this, further ones of noisy networks are closed. */
export const NOISY_REFUSED_ABOVE = 25

/**
 * Closes connections as soon as they are accepted: those that were reset in the accept queue and, at more than about
 * 250 new connections a second, those of noisy networks (fair-queue.ts). The kernel queues new connections in order of
 * arrival, so a client that opens connections faster than they are accepted delays all others. Closing a connection
 * here costs a fifth of aborting its request later.
 *
 * @param isNoisy whether many requests from the network of this peer were refused lately; false for proxies, whose
 * connections carry requests of many people
 */
export function guardConnections(
  server: Server,
  isNoisy: (socket: Socket) => boolean,
  noisyRefusedAbove: number = NOISY_REFUSED_ABOVE,
): void {
  const connectionListeners = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', onConnection)
  let windowEnd = 0
  let countInWindow = 0

  function onConnection(socket: Socket): void {
    if (mustClose(socket)) socket.destroy()
    else for (const listener of connectionListeners) listener.call(server, socket)
  }

  function mustClose(socket: Socket): boolean {
    // A connection that was reset has no remote address.
    if (socket.remoteAddress === undefined) return true
    const now = performance.now()
    if (now >= windowEnd) {
      windowEnd = now + WINDOW_MS
      countInWindow = 0
    }
    return ++countInWindow > noisyRefusedAbove && isNoisy(socket)
  }
}
