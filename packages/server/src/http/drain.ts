import { once } from 'node:events'
import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { SECOND } from '../clock.ts'
import type { SocketBound } from './sockets.ts'

/** How long a connection that was accepted before the drain may take to send its first request. */
export const FIRST_REQUEST_MS = SECOND / 2
/** Time limit of requests in progress; the process must end ten seconds after its signal (docs/contract.md). */
export const ANSWERS_MS = 5 * SECOND
const CHECK_MS = 20

/**
 * Stops listening, answers the requests that have arrived or are arriving, and closes each connection after its
 * response. Waits for first requests on new connections too, since a proxy may just have opened them: closing them
 * would be an error for its client.
 */
export async function drainHttp(
  server: Server,
  bound: Pick<SocketBound, 'awaitsFirstRequest'>,
): Promise<void> {
  const closed = once(server, 'close')
  // http.Server would also close connections whose first request is still on its way.
  NetServer.prototype.close.call(server)
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
  for (let waited = 0; waited < FIRST_REQUEST_MS && bound.awaitsFirstRequest(); waited += CHECK_MS)
    await wait(CHECK_MS)
  const closing = setInterval(() => server.closeIdleConnections(), CHECK_MS)
  server.closeIdleConnections()
  const deadline = new AbortController()
  await Promise.race([closed, wait(ANSWERS_MS, undefined, { signal: deadline.signal }).catch(() => {})])
  deadline.abort()
  clearInterval(closing)
  server.closeAllConnections()
  await closed
}
