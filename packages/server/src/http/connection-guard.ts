import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** New connections in one window beyond which those of noisy networks are turned away. */
const WINDOW_MS = 100
export const CALM_IN_WINDOW = 25

/**
 * Turns connections away before anything is spent on them: those that were reset while they waited to be accepted, and,
 * while more than some 250 a second arrive, those of noisy networks (fair-queue.ts). Accepting and closing costs a
 * fifth of what a request that is broken off costs. The kernel accepts in the order of arrival, so whoever opens
 * connections faster than they are taken is ahead of everybody else's until the kernel drops theirs too.
 *
 * @param isNoisy of the network of a peer; false for proxies, whose connections are many people's
 */
export function guardConnections(
  server: Server,
  isNoisy: (socket: Socket) => boolean,
  calmInWindow: number = CALM_IN_WINDOW,
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
    // A connection that was reset has no peer any more.
    if (socket.remoteAddress === undefined) return true
    const now = performance.now()
    if (now >= windowEnd) {
      windowEnd = now + WINDOW_MS
      inWindow = 0
    }
    return ++inWindow > calmInWindow && isNoisy(socket)
  }
}
