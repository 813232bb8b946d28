import { once } from 'node:events'
import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'
import { setImmediate as nextIteration, setTimeout as wait } from 'node:timers/promises'
import { SECOND } from '../clock.ts'
import type { SocketLimiter } from './sockets.ts'

/** How long the drain waits for the first requests of new connections. */
export const FIRST_REQUEST_MS = SECOND / 2
/** Time limit of requests in progress, since the process must end ten seconds after SIGTERM (docs/contract.md). */
export const DRAIN_REQUESTS_MS = 5 * SECOND
/** Time limit for accepting the connections in the system's queue, which clients may fill faster than it empties. */
const ACCEPT_MS = SECOND / 2
/**
 * An iteration of the event loop shorter than this rarely receives another connection: at a thousand per second, one in
 * ten does.
 */
const SHORT_ITERATION_MS = 0.1
/** How often the drain checks for first requests and for idle connections. */
const CHECK_MS = 20

/**
 * Accepts the connections that wait in the kernel's queue, stops listening, answers the requests that have arrived or
 * are arriving, and closes each connection after its response; after DRAIN_REQUESTS_MS it closes those that are left.
 * Waits for first requests on new connections too, since a proxy may just have opened them: closing them would be an
 * error for its client.
 */
export async function drainHttp(
  server: Server,
  limiter: Pick<SocketLimiter, 'awaitsFirstRequest'>,
): Promise<void> {
  const whenClosed = once(server, 'close')
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
  await acceptQueued(server)
  // The `close` of http.Server would also close connections whose first request is still on its way.
  NetServer.prototype.close.call(server)
  for (let waited = 0; waited < FIRST_REQUEST_MS && limiter.awaitsFirstRequest(); waited += CHECK_MS)
    await wait(CHECK_MS)
  const idleCheck = setInterval(() => server.closeIdleConnections(), CHECK_MS)
  server.closeIdleConnections()
  const timeoutAbort = new AbortController()
  await Promise.race([
    whenClosed,
    wait(DRAIN_REQUESTS_MS, undefined, { signal: timeoutAbort.signal }).catch(() => {}),
  ])
  timeoutAbort.abort()
  clearInterval(idleCheck)
  server.closeAllConnections()
  await whenClosed
}

/**
 * Accepts connections until the kernel's queue is empty or ACCEPT_MS have passed. The queue counts as empty after an
 * iteration of the event loop that accepted none and was so short that hardly any can have arrived since it polled the
 * queue. The kernel resets connections that are still queued when the socket is closed, and a proxy answers 502 for a
 * POST that it has sent on one of them.
 */
async function acceptQueued(server: Server): Promise<void> {
  let acceptedCount = 0
  const onConnection = () => {
    acceptedCount++
  }
  server.on('connection', onConnection)
  // The current iteration of the event loop may have polled the kernel's queue before the last connection arrived.
  await nextIteration()
  const deadline = performance.now() + ACCEPT_MS
  for (let startedAt = performance.now(); startedAt < deadline; startedAt = performance.now()) {
    const countBefore = acceptedCount
    await nextIteration()
    if (acceptedCount === countBefore && performance.now() - startedAt < SHORT_ITERATION_MS) break
  }
  server.off('connection', onConnection)
}
