import type { Clock } from '../../../clock.ts'
import { page } from '../../../paging.ts'
import { securityEventObject } from '../../../security-events/security-event-object.ts'
import type { User } from '../../../users/user.ts'
import { ok } from '../../answer.ts'
import { createKeyObjects } from '../../api-key-object.ts'
import type { HttpPorts } from '../../http-ports.ts'
import { ledgerEntryObject } from '../../ledger-entry-object.ts'
import { notFound } from '../../not-found.ts'
import * as answers from '../../openapi-schemas.ts'
import { pageQuery } from '../../query.ts'
import { type Route, route } from '../../route.ts'
import { consentObject } from '../consents.ts'
import { TAG, toActedBy } from './acting.ts'
import * as objects from './objects.ts'

type Deps = Pick<
  HttpPorts,
  'users' | 'apiKeys' | 'accounts' | 'consents' | 'sessions' | 'administration' | 'store'
>

export function personListRoutes(deps: Deps, clock: Clock): Route[] {
  const { users, apiKeys, accounts, consents, sessions, administration, store } = deps
  const keyObjects = createKeyObjects(apiKeys, clock)

  return [
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}/api-keys',
      operation: 'listKeysOfUser',
      tag: TAG,
      summary: "List a person's keys",
      description: 'Newest first.',
      access: 'admin:read',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of keys.', answers.apiKey, answers.apiKeyExample)],
      errors: [],
      async handle({ params, query: { limit, cursor } }) {
        const slice = await apiKeys.list(params.user_id, null, { limit, after: cursor ?? null })
        return ok(await keyObjects.pageOf(slice))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}/sessions',
      operation: 'listSessionsOfUser',
      tag: TAG,
      summary: "List a person's live sessions",
      description: 'Newest first.',
      access: 'admin:read',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of sessions.', objects.session, objects.sessionExample)],
      errors: [],
      async handle({ params, query: { limit, cursor } }) {
        const slice = await sessions.list(params.user_id, { limit, after: cursor ?? null })
        return ok(page(slice, objects.sessionObject))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}/consents',
      operation: 'listConsentsOfUser',
      tag: TAG,
      summary: 'List the apps to which a person gave access',
      description: 'Newest first.',
      access: 'admin:read',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of consents.', answers.consent, answers.consentExample)],
      errors: [],
      async handle({ params, query: { limit, cursor } }) {
        const slice = await consents.list(params.user_id, { limit, after: cursor ?? null })
        return ok(page(slice, consentObject))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}/ledger',
      operation: 'listLedgerOfUser',
      tag: TAG,
      summary: "List a person's ledger entries",
      description: 'Newest first. That it was read is recorded, and the person sees it.',
      access: 'admin:read',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of entries.', answers.ledgerEntry, answers.ledgerEntryExample)],
      errors: [],
      async handle({ params, query: { limit, cursor }, ...input }) {
        const user = await findUser(params.user_id)
        const pageRequest = { limit, after: cursor ?? null }
        const readLedger = () => accounts.ledger(user.id, pageRequest)
        return ok(
          page(
            await administration.auditedRead(user.id, 'ledger', toActedBy(input), readLedger),
            ledgerEntryObject,
          ),
        )
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}/security-events',
      operation: 'listSecurityEventsOfUser',
      tag: TAG,
      summary: "List a person's security events",
      description: 'Newest first.',
      access: 'admin:read',
      query: pageQuery,
      answers: [
        answers.pageAnswer('One page of events.', answers.securityEvent, answers.securityEventExample),
      ],
      errors: [],
      async handle({ params, query: { limit, cursor } }) {
        const slice = await store.securityEvents.list(params.user_id, { limit, after: cursor ?? null })
        return ok(page(slice, securityEventObject))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}/mails',
      operation: 'listMailsOfUser',
      tag: TAG,
      summary: 'List the last mails to a person',
      description:
        'Template, state and times of the last 50; never a body, link or code. That it was read is recorded, and the person sees it.',
      access: 'admin:read',
      answers: [answers.pageAnswer('The mails, newest first.', objects.mail, objects.mailExample)],
      errors: [],
      async handle({ params, ...input }) {
        const user = await findUser(params.user_id)
        const rows = await administration.mailsOf(user.id, toActedBy(input))
        return ok(page({ rows, next: null }, objects.mailObject))
      },
    }),
  ]

  async function findUser(id: string): Promise<User> {
    const user = await users.get(id)
    if (!user) throw notFound()
    return user
  }
}
