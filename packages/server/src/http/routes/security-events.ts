import type { SecurityEventObject } from '@keyway/sdk/protocol'
import { toRfc3339 } from '../../clock.ts'
import { page } from '../../paging.ts'
import type { SecurityEvent } from '../../security-events/security-event.ts'
import { ok } from '../answer.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { pageQuery } from '../query.ts'
import { type Route, route } from '../route.ts'

export function securityEventRoutes({ securityEvents }: Pick<HttpPorts, 'securityEvents'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/security-events',
      operation: 'listSecurityEvents',
      tag: 'Account',
      summary: 'List the security events of your account',
      description:
        'Sign-ins, reuse of refresh tokens, ended sessions, suspensions, created and ended keys; newest first, kept for 400 days.',
      access: 'events:read',
      query: pageQuery,
      answers: [
        answers.pageAnswer('One page of events.', answers.securityEvent, answers.securityEventExample),
      ],
      errors: [],
      async handle({ principal, query }) {
        const wanted = { limit: query.limit, after: query.cursor ?? null }
        return ok(page(await securityEvents.list(principal.userId, wanted), securityEventObject))
      },
    }),
  ]
}

function securityEventObject(event: SecurityEvent): SecurityEventObject {
  return {
    id: event.id,
    type: event.type,
    at: toRfc3339(event.at),
    network: event.network,
    client: event.client,
    ...(event.keyId && { key_id: event.keyId }),
    ...(event.sessionId && { session_id: event.sessionId }),
  }
}
