import { z } from 'zod'
import { ok } from '../answer.ts'
import type { HealthCheck, HttpPorts } from '../http-ports.ts'
import { type Route, route } from '../route.ts'

export interface HealthOptions {
  services: Pick<HttpPorts, 'readiness'>
  proxyMistake: () => string | null
}

const TAG = 'Service'
const check = z.strictObject({ name: z.string(), ok: z.boolean(), detail: z.string().optional() })
const readiness = z.strictObject({ status: z.enum(['ready', 'unavailable']), checks: z.array(check) })

export function healthRoutes({ services, proxyMistake }: HealthOptions): Route[] {
  return [
    route({
      method: 'GET',
      path: '/livez',
      operation: 'getLiveness',
      tag: TAG,
      summary: 'Whether the process runs',
      description: 'Does not check the database: restarting this process would not repair it.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'The process runs.',
          schema: z.strictObject({ status: z.literal('alive') }),
          example: { status: 'alive' },
        },
      ],
      errors: [],
      handle: () => ok({ status: 'alive' }),
    }),
    route({
      method: 'GET',
      path: '/readyz',
      operation: 'getReadiness',
      tag: TAG,
      summary: 'Whether this node can serve',
      description: 'The result of every check. Only a failed required check (the database) makes it 503.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'Ready.',
          schema: readiness,
          example: { status: 'ready', checks: [{ name: 'database', ok: true }] },
        },
        {
          status: 503,
          description: 'Not ready.',
          schema: readiness,
          example: {
            status: 'unavailable',
            checks: [{ name: 'database', ok: false, detail: 'cannot be reached' }],
          },
        },
      ],
      errors: [],
      async handle() {
        const checks = [...(await services.readiness.checks()), ...proxyChecks()]
        const isReady = checks.every(({ ok, required }) => ok || !required)
        const publicChecks = checks.map(({ name, ok, detail }) => ({ name, ok, ...(detail && { detail }) }))
        const body = { status: isReady ? 'ready' : 'unavailable', checks: publicChecks }
        return isReady ? ok(body) : { status: 503, body, headers: { 'Retry-After': '1' } }
      },
    }),
  ]

  function proxyChecks(): HealthCheck[] {
    const mistake = proxyMistake()
    return mistake ? [{ name: 'trusted_proxies', ok: false, required: false, detail: mistake }] : []
  }
}
