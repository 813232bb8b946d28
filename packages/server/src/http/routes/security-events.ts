import { parseId } from '../../ids.ts'
import { type Position, page } from '../../paging.ts'
import {
  isSecurityEventType,
  SECURITY_EVENT_TYPES,
  type SecurityEventType,
} from '../../security-events/security-event.ts'
import {
  EXPORT_BATCH,
  SECURITY_EVENT_FORMATS,
  securityEventExport,
  securityEventObject,
} from '../../security-events/security-event-object.ts'
import { prefers } from '../accept.ts'
import { type Answer, ok } from '../answer.ts'
import { parsed } from '../body-fields.ts'
import { EXAMPLE_IDS } from '../example-ids.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { pageQuery } from '../query.ts'
import { type Route, route } from '../route.ts'

const eventQuery = pageQuery.extend({
  type: parsed('a type of event', 'sign_in', (text): SecurityEventType | null =>
    isSecurityEventType(text) ? text : null,
  )
    .optional()
    .meta({ description: `One of ${SECURITY_EVENT_TYPES.join(', ')}.` }),
  key_id: parsed('an id', EXAMPLE_IDS.key, parseId).optional().meta({ description: 'About this key only.' }),
})

export function securityEventRoutes({ securityEvents }: Pick<HttpPorts, 'securityEvents'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/security-events',
      operation: 'listSecurityEvents',
      tag: 'Account',
      summary: 'List the security events of your account',
      description:
        'Sign-ins, reuse of refresh tokens, ended sessions, suspensions, created and ended keys; newest first, kept for 400 days. With `Accept: application/x-ndjson` or `text/csv`: all that match.',
      access: 'events:read',
      query: eventQuery,
      answers: [
        {
          ...answers.pageAnswer('One page of events.', answers.securityEvent, answers.securityEventExample),
          also: { type: 'text/csv', example: SECURITY_EVENT_FORMATS.csv.head },
        },
      ],
      errors: [],
      async handle({ principal: { userId }, query, incoming, reauthenticate }): Promise<Answer> {
        const filter = { types: query.type && [query.type], keyId: query.key_id }
        const format = prefers(incoming, 'text/csv')
          ? 'csv'
          : prefers(incoming, 'application/x-ndjson')
            ? 'jsonl'
            : null
        if (format) {
          const read = (after: Position | null) =>
            securityEvents.list(userId, { limit: EXPORT_BATCH, after }, filter)
          const { type } = SECURITY_EVENT_FORMATS[format]
          return { status: 200, type, body: securityEventExport(format, read, reauthenticate) }
        }
        const pageRequest = { limit: query.limit, after: query.cursor ?? null }
        return ok(page(await securityEvents.list(userId, pageRequest, filter), securityEventObject))
      },
    }),
  ]
}
