import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { notFound } from '../not-found.ts'
import { type Route, route } from '../route.ts'

export interface MetricsOptions {
  metrics?: { render(): Promise<{ type: string; body: string }> }
  /** Whether listening address, peer and Host are this machine's own, and no proxy stands between. */
  isLocal: (incoming: IncomingMessage) => boolean
}

export function metricsRoutes({ metrics, isLocal }: MetricsOptions): Route[] {
  return [
    route({
      method: 'GET',
      path: '/metrics',
      operation: 'getMetrics',
      tag: 'Service',
      summary: 'What Prometheus scrapes',
      description:
        'Only for this machine itself, while the service listens on loopback; otherwise, and behind a proxy, 404. `KEYWAY_METRICS_PORT` serves it on a port of its own instead.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'The exposition format of Prometheus.',
          schema: z.string(),
          type: 'text/plain',
        },
      ],
      errors: ['not_found'],
      async handle({ incoming }) {
        if (!metrics || !isLocal(incoming)) throw notFound()
        return { status: 200, ...(await metrics.render()) }
      },
    }),
  ]
}
