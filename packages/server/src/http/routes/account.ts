import type { AccountObject, ChargeAuthorizationObject } from '@keyway/sdk/protocol'
import { z } from 'zod'
import type { Account } from '../../billing/accounts.ts'
import type { ChargeAuthorization } from '../../billing/charge-authorizations.ts'
import { CURRENCY, formatMoney } from '../../billing/money.ts'
import { toRfc3339, toRfc3339OrNull } from '../../clock.ts'
import { page } from '../../paging.ts'
import { MAX_USER_NAME_LENGTH, type User } from '../../users/user.ts'
import { ok } from '../answer.ts'
import { name, nameOrNone, optional } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import { ledgerEntryObject } from '../ledger-entry-object.ts'
import { notFound } from '../not-found.ts'
import * as answers from '../openapi-schemas.ts'
import { pageQuery } from '../query.ts'
import { type Route, route } from '../route.ts'
import { userObject } from '../user-object.ts'

const profileChange = z.object({
  name: optional(name).meta({ description: `At most ${MAX_USER_NAME_LENGTH} characters; empty removes it.` }),
})

const theAccount = { schema: answers.account, example: answers.accountExample }
const theAuthorization = { schema: answers.chargeAuthorization, example: answers.chargeAuthorizationExample }
const TAG = 'Account'

type Needs = Pick<HttpPorts, 'users' | 'accounts'>

export function accountRoutes({ users, accounts }: Needs): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/me',
      operation: 'getAccount',
      tag: TAG,
      summary: 'Read your account',
      description: 'The user, the balance, the subscription, and the apps that may charge the balance.',
      access: 'account:read',
      answers: [{ status: 200, description: 'The account.', ...theAccount }],
      errors: [],
      async handle({ principal }) {
        return ok(await readAccount(principal.userId))
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/me',
      operation: 'updateAccount',
      tag: TAG,
      summary: 'Change your name',
      description: 'An omitted name stays unchanged; an empty one removes it.',
      access: 'account:write',
      body: profileChange,
      example: { name: 'Ada' },
      answers: [{ status: 200, description: 'The account.', ...theAccount }],
      errors: [],
      async handle({ principal, body }) {
        const name = nameOrNone(body.name)
        if (name !== undefined) await users.rename(principal.userId, name)
        return ok(await readAccount(principal.userId))
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
      answers: [{ status: 200, description: 'The authorisation.', ...theAuthorization }],
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
      answers: [{ status: 200, description: 'The authorisation.', ...theAuthorization }],
      errors: [],
      async handle({ principal, params, caller }) {
        return ok(chargeAuthorizationObject(await accounts.withdraw(principal.userId, params.app_id, caller)))
      },
    }),
  ]

  async function readAccount(userId: string) {
    const [user, account] = await Promise.all([users.get(userId), accounts.get(userId)])
    if (!user) throw notFound()
    return accountObject(user, account)
  }
}

function accountObject(user: User, account: Account): AccountObject {
  const { plan, status, startedAt } = account.subscription
  return {
    user: userObject(user),
    balance: { amount: formatMoney(account.balance), currency: CURRENCY },
    subscription: { plan, status, started_at: toRfc3339(startedAt) },
    charge_authorizations: account.authorizations.map(chargeAuthorizationObject),
  }
}

export function chargeAuthorizationObject(authorization: ChargeAuthorization): ChargeAuthorizationObject {
  return {
    app_id: authorization.appId,
    name: authorization.name,
    granted_at: toRfc3339(authorization.grantedAt),
    revoked_at: toRfc3339OrNull(authorization.revokedAt),
  }
}
