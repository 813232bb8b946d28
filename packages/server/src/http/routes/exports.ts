import { z } from 'zod'
import type { Clock } from '../../clock.ts'
import { assertFresh } from '../../sessions/reauthentication.ts'
import type { User } from '../../users/user.ts'
import type { Answer } from '../answer.ts'
import type { HttpPorts } from '../http-ports.ts'
import { notFound } from '../not-found.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'
import { TAG, toActedBy } from './admin/acting.ts'

/**
 * The schema names only two fields. An export has many more, most of them lists whose elements are those of the call
 * that lists the same objects.
 */
const exportDocument = {
  status: 200,
  description: 'The document.',
  schema: z
    .looseObject({ exported_at: z.iso.datetime({ precision: 3 }), user: answers.user })
    .meta({ id: 'PersonExport' }),
  example: { exported_at: '2026-11-20T19:22:00.000Z', user: answers.userExample },
} as const

/** Everything about one person as one document, for the person, administrators and support. */
export function exportRoutes(services: HttpPorts, clock: Clock): Route[] {
  const { users, administration, personExports } = services
  const { exportOf } = personExports

  return [
    route({
      method: 'GET',
      path: '/v1/me/export',
      operation: 'exportAccount',
      tag: 'Account',
      summary: 'Export everything about your account',
      description:
        'One JSON document: profile, balance, ledger, keys (never the keys themselves), sessions, consents, security events, mails (never their content) and usage by the day. Needs a sign-in of the last 30 minutes.',
      access: 'session',
      answers: [exportDocument],
      errors: ['reauthentication_required', 'rate_limited'],
      async handle({ principal, reauthenticate }) {
        assertFresh(principal.session, clock.now())
        const user = await findUser(principal.userId)
        return exportAnswer(user, exportOf(user, 'person', reauthenticate))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}/export',
      operation: 'exportUser',
      tag: TAG,
      summary: 'Export everything about a person',
      description:
        'What the person gets by `/v1/me/export`, and your own id, errors of mails, and the acts of administrators that concern the person. That it was read is recorded, and the person sees it.',
      access: 'admin:read',
      answers: [exportDocument],
      errors: ['rate_limited'],
      async handle({ params, reauthenticate, ...input }) {
        const user = await findUser(params.user_id)
        const startExport = async () => exportOf(user, 'operator', reauthenticate)
        return exportAnswer(
          user,
          await administration.auditedRead(user.id, 'export', toActedBy(input), startExport),
        )
      },
    }),
  ]

  async function findUser(id: string): Promise<User> {
    const user = await users.get(id)
    if (!user) throw notFound()
    return user
  }
}

function exportAnswer({ id }: User, body: ReadableStream): Answer {
  return {
    status: 200,
    body,
    headers: { 'Content-Disposition': `attachment; filename="keyway-${id}.json"` },
  }
}
