import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const WINDOW_MS = 100
/** Above this number of new connections per window, those of noisy networks are closed. */
export const NOISY_REFUSED_ABOVE = 25

/**
 * Closes connections as soon as they are accepted: those that were reset in the accept queue and, at more than about
 * 250 new connections a second, those of noisy networks (fair-queue.ts). This costs a fifth of aborting a request
 * later. The kernel accepts in order of arrival, so a client that opens connections faster than they are accepted
 * delays all others.
 *
 * @param isNoisy of the network of a peer; false for proxies, whose connections are many people's
 */
export function guardConnections(
  server: Server,
  isNoisy: (socket: Socket) => boolean,
  noisyRefusedAbove: number = NOISY_REFUSED_ABOVE,
): void {
  const serve = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', onConnection)
  let windowEnd = 0
  let inWindow = 0

  function onConnection(socket: Socket): void {
    if (isTurnedAway(socket)) socket.destroy()
    else for (const listener of serve) listener.call(server, socket)
  }

  function isTurnedAway(socket: Socket): boolean {
    // A connection that was reset has no remote address.
    if (socket.remoteAddress === undefined) return true
    const now = performance.now()
    if (now >= windowEnd) {
      windowEnd = now + WINDOW_MS
      inWindow = 0
    }
    return ++inWindow > noisyRefusedAbove && isNoisy(socket)
  }
}
