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
  /** What a scraper must send; null: none, and only this machine is answered. */
  metricsToken: string | null
  publicUrl: string
  /** Whether listening address, peer and Host are this machine's own, and no proxy header came. */
  isLocal: (incoming: IncomingMessage) => boolean
}

export function metricsRoutes({ metrics, metricsToken, publicUrl, isLocal }: MetricsOptions): Route[] {
  // A proxy may add no header at all. Where the public URL is elsewhere, a local peer proves nothing.
  const mayBeLocal = isLoopbackHost(new URL(publicUrl).hostname)

  return [
    route({
      method: 'GET',
      path: '/metrics',
      operation: 'getMetrics',
      tag: 'Service',
      summary: 'What Prometheus scrapes',
      description:
        'With `Authorization: Bearer <KEYWAY_METRICS_TOKEN>`. Without that setting only for this machine itself, while listening address and public URL are loopback; otherwise 404. `KEYWAY_METRICS_PORT` serves it on a port of its own instead.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'The exposition format of Prometheus.',
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
