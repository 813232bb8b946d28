import { z } from 'zod'
import { page } from '../../paging.ts'
import { MAX_USER_NAME_LENGTH } from '../../users/user.ts'
import { chargeAuthorizationObject, readAccount } from '../account-object.ts'
import { ok } from '../answer.ts'
import { localeOrEmpty, name, nullIfEmpty, optional } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import { ledgerEntryObject } from '../ledger-entry-object.ts'
import * as answers from '../openapi-schemas.ts'
import { pageQuery } from '../query.ts'
import { type Route, route } from '../route.ts'

const profileChange = z.object({
  name: optional(name).meta({ description: `At most ${MAX_USER_NAME_LENGTH} characters; empty removes it.` }),
  locale: optional(localeOrEmpty).meta({
    description:
      'The language of pages and mails (BCP 47); one that there is not gives English. Empty: what the browser asks for.',
  }),
})

const accountAnswer = { schema: answers.account, example: answers.accountExample }
const authorizationAnswer = {
  schema: answers.chargeAuthorization,
  example: answers.chargeAuthorizationExample,
}
const TAG = 'Account'

type Deps = Pick<HttpPorts, 'users' | 'accounts' | 'emailChanges'>

export function accountRoutes(services: Deps): Route[] {
  const { users, accounts } = services

  return [
    route({
      method: 'GET',
      path: '/v1/me',
      operation: 'getAccount',
      tag: TAG,
      summary: 'Read your account',
      description:
        'The user, the balance, the subscription, the apps that may charge the balance, a change of the address that awaits confirmation, and when the account will be deleted, if that was asked for.',
      access: 'account:read',
      answers: [{ status: 200, description: 'The account.', ...accountAnswer }],
      errors: [],
      async handle({ principal }) {
        return ok(await readAccount(services, principal.userId))
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/me',
      operation: 'updateAccount',
      tag: TAG,
      summary: 'Change your name or language',
      description: 'What is omitted stays unchanged; what is empty is removed.',
      access: 'account:write',
      body: profileChange,
      example: { name: 'Ada' },
      answers: [{ status: 200, description: 'The account.', ...accountAnswer }],
      errors: [],
      async handle({ principal, body }) {
        const name = nullIfEmpty(body.name)
        const locale = nullIfEmpty(body.locale)
        if (name !== undefined) await users.rename(principal.userId, name)
        if (locale !== undefined) await users.setLocale(principal.userId, locale)
        return ok(await readAccount(services, principal.userId))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/me/ledger',
      operation: 'listLedger',
      tag: TAG,
      summary: 'List the ledger entries of your balance',
      description: 'Newest first; amounts are signed decimal numbers in strings.',
      access: 'account:read',
      query: pageQuery,
      answers: [answers.pageAnswer('One page of entries.', answers.ledgerEntry, answers.ledgerEntryExample)],
      errors: [],
      async handle({ principal, query }) {
        const slice = await accounts.ledger(principal.userId, {
          limit: query.limit,
          after: query.cursor ?? null,
        })
        return ok(page(slice, ledgerEntryObject))
      },
    }),
    route({
      method: 'PUT',
      path: '/v1/me/charge-authorizations/{app_id}',
      operation: 'authorizeCharges',
      tag: TAG,
      summary: 'Let an app charge your balance',
      description: 'Any registered app. Repeating it changes nothing.',
      access: 'owner',
      answers: [{ status: 200, description: 'The authorisation.', ...authorizationAnswer }],
      errors: ['rate_limited'],
      async handle({ principal, params, caller }) {
        return ok(
          chargeAuthorizationObject(await accounts.authorize(principal.userId, params.app_id, caller)),
        )
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/me/charge-authorizations/{app_id}',
      operation: 'withdrawCharges',
      tag: TAG,
      summary: 'Stop an app from charging your balance',
      description: 'The authorisation stays listed with `revoked_at`. Repeating it changes nothing.',
      access: 'account:write',
      answers: [{ status: 200, description: 'The authorisation.', ...authorizationAnswer }],
      errors: [],
      async handle({ principal, params, caller }) {
        return ok(chargeAuthorizationObject(await accounts.withdraw(principal.userId, params.app_id, caller)))
      },
    }),
  ]
}
