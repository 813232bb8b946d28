import { AUDIT_TYPES, isAuditType } from '../../../audit/audit-event.ts'
import { auditExport } from '../../../audit/audit-export.ts'
import { AUDIT_CSV_HEADER, auditCsvLine, auditEventObject } from '../../../audit/audit-object.ts'
import type { AuditFilter } from '../../../audit/audit-store.ts'
import { parseId } from '../../../ids.ts'
import { page } from '../../../paging.ts'
import { prefers } from '../../accept.ts'
import { type Answer, ok } from '../../answer.ts'
import { instant, parsed } from '../../body-fields.ts'
import { EXAMPLE_IDS } from '../../example-ids.ts'
import type { HttpPorts } from '../../http-ports.ts'
import * as answers from '../../openapi-schemas.ts'
import { pageQuery } from '../../query.ts'
import { type Route, route } from '../../route.ts'
import { TAG } from './acting.ts'
import * as objects from './objects.ts'

const idField = parsed('an id', EXAMPLE_IDS.user, parseId)

const auditQuery = pageQuery.extend({
  actor: idField.optional().meta({ description: 'The id of who acted.' }),
  subject: parsed('an id', EXAMPLE_IDS.user, text => (text.length <= 64 ? text.toLowerCase() : null))
    .optional()
    .meta({ description: 'The id of whom or what it concerns.' }),
  type: parsed('a type of act', 'user.suspended', text => (isAuditType(text) ? text : null))
    .optional()
    .meta({ description: `One of ${Object.keys(AUDIT_TYPES).join(', ')}.` }),
  from: instant.optional().meta({ description: 'Inclusive.' }),
  to: instant.optional().meta({ description: 'Exclusive.' }),
})

export function auditRoutes({ store }: Pick<HttpPorts, 'store'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/admin/audit-events',
      operation: 'listAuditEvents',
      tag: TAG,
      summary: 'List what administrators did',
      description:
        'Newest first. With `Accept: application/x-ndjson` or `text/csv`: all that match, oldest first. Each row has the hash of the one before.',
      access: 'admin:read',
      query: auditQuery,
      answers: [
        {
          ...answers.pageAnswer('One page of acts.', objects.auditEvent, objects.auditEventExample),
          also: { type: 'text/csv', example: AUDIT_CSV_HEADER },
        },
      ],
      errors: [],
      async handle({ query: { limit, cursor, ...filter }, incoming, reauthenticate }): Promise<Answer> {
        const auditFilter: AuditFilter = filter
        const read = (after: number, rows: number) => store.audit.after(after, auditFilter, rows)
        if (prefers(incoming, 'text/csv'))
          return {
            status: 200,
            type: 'text/csv; charset=utf-8; header=present',
            body: auditExport({ read, reauthenticate, head: AUDIT_CSV_HEADER, toLine: auditCsvLine }),
          }
        if (prefers(incoming, 'application/x-ndjson'))
          return {
            status: 200,
            type: 'application/x-ndjson',
            body: auditExport({
              read,
              reauthenticate,
              head: '',
              toLine: event => `${JSON.stringify(auditEventObject(event))}\n`,
            }),
          }
        const slice = await store.audit.list(auditFilter, { limit, after: cursor ?? null })
        return ok(page(slice, auditEventObject))
      },
    }),
  ]
}
