import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { KeywayError } from '../../errors.ts'
import { isLoopbackHost } from '../../network.ts'
import { isBearer } from '../../secrets.ts'
import type { MetricsSource } from '../http-ports.ts'
import { notFound } from '../not-found.ts'
import { type Route, route } from '../route.ts'

export interface MetricsOptions {
  metrics?: MetricsSource
  /**
   * The Bearer token of scrapers. If null, only this machine may scrape, without a token, and only if the public URL is
   * loopback.
   */
  metricsToken: string | null
  publicUrl: string
  /** See `Callers.isLocal`. */
  isLocal: (incoming: IncomingMessage) => boolean
}

export function metricsRoutes({ metrics, metricsToken, publicUrl, isLocal }: MetricsOptions): Route[] {
  // If the public URL is not loopback, a local peer may be a proxy: some proxies add no headers that would reveal them.
  const mayBeLocal = isLoopbackHost(new URL(publicUrl).hostname)

  return [
    route({
      method: 'GET',
      path: '/metrics',
      operation: 'getMetrics',
      tag: 'Service',
      summary: 'Metrics for Prometheus',
      description:
        'Needs `Authorization: Bearer <KEYWAY_METRICS_TOKEN>`. Without that setting it answers only this machine, if the listening address and the public URL are loopback; otherwise 404. With `KEYWAY_METRICS_PORT` it is on a separate port instead.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'Prometheus exposition format.',
          schema: z.string(),
          type: 'text/plain',
        },
      ],
      errors: ['not_found', 'authentication_required', 'invalid_token'],
      async handle({ incoming }) {
        if (!metrics) throw notFound()
        assertScraper(incoming)
        return { status: 200, ...(await metrics.render()) }
      },
    }),
  ]

  function assertScraper(incoming: IncomingMessage): void {
    const { authorization } = incoming.headers
    if (metricsToken === null) {
      if (!mayBeLocal || !isLocal(incoming)) throw notFound()
      return
    }
    if (authorization === undefined)
      throw new KeywayError('authentication_required', 'Send Authorization: Bearer <KEYWAY_METRICS_TOKEN>.')
    if (!isBearer(authorization, metricsToken))
      throw new KeywayError('invalid_token', 'This is not the KEYWAY_METRICS_TOKEN of this service.')
  }
}
