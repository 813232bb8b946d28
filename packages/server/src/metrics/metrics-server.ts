import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { NO_STORE } from '../cache-control.ts'
import { type Config, ConfigError } from '../config.ts'
import { isBearer } from '../secrets.ts'
import type { Metrics } from './metrics.ts'

/**
 * Serves `/metrics` on a separate port (`KEYWAY_METRICS_PORT`), which the network or `KEYWAY_METRICS_TOKEN` protects.
 * Any other path or method is answered with 404.
 *
 * @throws ConfigError if the port cannot be opened, for example because it is in use
 */
export async function listenForMetrics(
  metrics: Metrics,
  { host, port, metricsToken }: Pick<Config, 'host' | 'port' | 'metricsToken'>,
): Promise<Server> {
  const server = createServer({ requestTimeout: 5000, headersTimeout: 5000 }, async (request, response) => {
    const isScrape = request.method === 'GET' && request.url?.split('?')[0] === '/metrics'
    if (!isScrape) return void response.writeHead(404, { 'Content-Type': 'text/plain' }).end('GET /metrics\n')
    if (metricsToken !== null && !isBearer(request.headers.authorization, metricsToken))
      return void response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
    try {
      const { type, body } = await metrics.render()
      response.writeHead(200, { 'Content-Type': type, 'Cache-Control': NO_STORE }).end(body)
    } catch {
      response.writeHead(500).end()
    }
  })
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError([
      `Metrics cannot listen on ${host}:${port} (${code}). Set KEYWAY_METRICS_PORT to a free port.`,
    ])
  }
  return server
}
