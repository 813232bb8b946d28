import { API_KEY_PATTERN } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { hasControlCharacters } from '../../../api-keys/key-name.ts'
import { CURRENCY, formatMoney, parseAmount } from '../../../billing/money.ts'
import { toRfc3339OrNull } from '../../../clock.ts'
import { invalidRequest } from '../../../errors.ts'
import { parseId } from '../../../ids.ts'
import { page } from '../../../paging.ts'
import { USER_ROLES, type User } from '../../../users/user.ts'
import { searchOf } from '../../../users/user-search.ts'
import type { UserSearch } from '../../../users/user-store.ts'
import { created, NO_CONTENT, ok } from '../../answer.ts'
import { name, nullIfEmpty, optional, text } from '../../body-fields.ts'
import type { HttpPorts } from '../../http-ports.ts'
import { ledgerEntryObject } from '../../ledger-entry-object.ts'
import { notFound } from '../../not-found.ts'
import * as answers from '../../openapi-schemas.ts'
import { pageQuery } from '../../query.ts'
import { type Route, route } from '../../route.ts'
import { userObject } from '../../user-object.ts'
import { assertMayGiveRights, reason, TAG, toActedBy } from './acting.ts'
import * as objects from './objects.ts'

const MAX_QUERY_LENGTH = 254
const MAX_DESCRIPTION_LENGTH = 200
const AMOUNT_RULE = 'a positive decimal number in a string, with at most 6 decimal places'

const peopleQuery = pageQuery.extend({
  query: text('the beginning of an address, a domain, an id or a key prefix', 'ada@', {
    max: MAX_QUERY_LENGTH,
  })
    .refine(value => !API_KEY_PATTERN.test(value), {
      error: 'must not be a whole key: its first 12 characters',
    })
    .optional()
    .meta({
      description:
        'The beginning of an address (`ada`), of a domain (`@example`, or `example` if no address begins with it), or of a key (`svc_Ab3`), or an id. Ordered by what is searched. Where the database has trigrams, any part of an address from three characters on, newest first; with an `@` in it only if it is no whole address and no address begins with it.',
    }),
  status: z
    .enum(['active', 'suspended', 'deleted'], { error: 'must be active, suspended or deleted' })
    .optional(),
  role: z.enum(USER_ROLES, { error: 'must be user, support or admin' }).optional(),
  sort: z
    .enum(['-created_at', 'created_at'], { error: 'must be -created_at or created_at' })
    .optional()
    .meta({ description: 'Without `query`: newest first (`-created_at`, the default) or oldest first.' }),
})

const personChange = z.strictObject({
  name: optional(name),
  role: optional(z.enum(USER_ROLES, { error: 'must be user, support or admin' })),
  status: optional(z.enum(['active', 'suspended'], { error: 'must be active or suspended' })),
  reason: optional(reason),
})

const credit = z.strictObject({
  amount: text(AMOUNT_RULE, '5.00').transform((value, context) => {
    const amount = parseAmount(value)
    if (amount !== null) return amount
    context.addIssue({ code: 'custom', message: `must be ${AMOUNT_RULE}, for example "5.00"` })
    return z.NEVER
  }),
  description: text('what the person sees', 'Refund of order 4711', {
    min: 1,
    max: MAX_DESCRIPTION_LENGTH,
  }).refine(value => !hasControlCharacters(value), { error: 'must not contain control characters' }),
  reason: optional(reason),
})

type Deps = Pick<HttpPorts, 'users' | 'apiKeys' | 'credits' | 'magicLinks' | 'sessions' | 'store'>

const personAnswer = { schema: answers.user, example: answers.userExample }

export function peopleRoutes(deps: Deps): Route[] {
  const { users, apiKeys, credits, magicLinks, sessions, store } = deps

  return [
    route({
      method: 'GET',
      path: '/v1/admin/users',
      operation: 'listUsers',
      tag: TAG,
      summary: 'List and search people',
      description:
        'A page with filters may have fewer entries than `limit`, or none, and still `has_more`: each call reads a bounded number of rows.',
      access: 'admin:read',
      query: peopleQuery,
      answers: [answers.pageAnswer('One page of people.', answers.user, answers.userExample)],
      errors: [],
      async handle({ query: { limit, cursor, query, status, role, sort } }) {
        const id = query === undefined ? null : parseId(query.trim())
        if (id) {
          const user = await users.get(id)
          return ok(page({ rows: user ? [user] : [], next: null }, userObject))
        }
        const search: UserSearch = { by: searchOf(query), status, role, oldestFirst: sort === 'created_at' }
        return ok(page(await store.users.search(search, { limit, after: cursor ?? null }), userObject))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/users/{user_id}',
      operation: 'getUser',
      tag: TAG,
      summary: 'Read a person',
      description:
        'With the balance, when the account will be deleted if the person asked for that, and, of an imported person, your own id.',
      access: 'admin:read',
      answers: [
        { status: 200, description: 'The person.', schema: objects.person, example: objects.personExample },
      ],
      errors: [],
      async handle({ params }) {
        const user = await findUser(params.user_id)
        const amount = formatMoney(await store.billing.balance(user.id))
        const external_id = await store.users.externalIdOf(user.id)
        return ok({
          ...userObject(user),
          balance: { amount, currency: CURRENCY },
          external_id,
          deletes_at: toRfc3339OrNull(user.deletesAt),
        })
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/admin/users/{user_id}',
      operation: 'updateUser',
      tag: TAG,
      summary: 'Change the name, role or status of a person',
      description:
        'To suspend needs a `reason`. A role needs a signed-in administrator, not a key; the answer lists the keys of the person that may administer by it. Several fields are changed together, or none of them.',
      access: 'admin:write',
      body: personChange,
      example: { name: 'Ada' },
      answers: [
        {
          status: 200,
          description: 'The person.',
          schema: objects.changedPerson,
          example: objects.changedPersonExample,
        },
      ],
      errors: ['last_administrator'],
      async handle({ params, body, ...input }) {
        const userBefore = await findUser(params.user_id)
        const actedBy = toActedBy(input, body.reason ?? null)
        if (body.role !== undefined) assertMayGiveRights(input.principal)
        if (body.status === 'suspended' && body.reason === undefined)
          throw invalidRequest([{ field: 'reason', message: 'is required to suspend, for example "spam"' }])
        const { role, status } = body
        const user = await users.change(
          userBefore.id,
          { name: nullIfEmpty(body.name), role, status },
          actedBy,
        )
        const becomesAdministrator = user.role === 'admin' && userBefore.role !== 'admin'
        const keys = becomesAdministrator ? await apiKeys.listAdministrative(user.id) : []
        const gaining_keys = keys.map(key => ({ id: key.id, key_prefix: key.keyPrefix }))
        return ok({ ...userObject(user), ...(body.role !== undefined && { gaining_keys }) })
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/users/{user_id}',
      operation: 'deleteUser',
      tag: TAG,
      summary: 'Delete an account permanently',
      description:
        'Sessions and keys end, name and address are erased, the ledger stays. Repeating it changes nothing.',
      access: 'admin:write',
      answers: [{ status: 200, description: 'The account.', ...personAnswer }],
      errors: ['last_administrator'],
      async handle({ params, ...input }) {
        return ok(userObject(await users.delete(params.user_id, toActedBy(input))))
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/users/{user_id}/sessions',
      operation: 'endSessionsOfUser',
      tag: TAG,
      summary: "End all of a person's sessions",
      description: 'Their access tokens are refused immediately.',
      access: 'admin:write',
      answers: [{ status: 204, description: 'No session is left.' }],
      errors: [],
      async handle({ params, ...input }) {
        const user = await findUser(params.user_id)
        await sessions.endAll(user.id, toActedBy(input))
        return NO_CONTENT
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/users/{user_id}/credits',
      operation: 'grantCredit',
      tag: TAG,
      summary: "Add credit to a person's balance",
      description: 'The same Idempotency-Key and body again get the same entry, for good.',
      access: 'admin:write',
      body: credit,
      example: { amount: '5.00', description: 'Refund of order 4711' },
      idempotencyKey: 'required',
      answers: [
        {
          status: 201,
          description: 'The ledger entry.',
          schema: answers.ledgerEntry,
          example: answers.ledgerEntryExample,
        },
      ],
      errors: ['idempotency_conflict'],
      async handle({ params, body, idempotencyKey, ...input }) {
        const creditToGrant = { userId: params.user_id, amount: body.amount, description: body.description }
        const actedBy = toActedBy(input, body.reason ?? null)
        return created(ledgerEntryObject(await credits.grant(creditToGrant, idempotencyKey!, actedBy)))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/users/{user_id}/clear-limits',
      operation: 'clearLimitsOfUser',
      tag: TAG,
      summary: "Reset the sign-in limits of a person's address",
      description: 'The counts of mails to it and of wrong codes typed for it; not those of networks.',
      access: 'admin:write',
      answers: [{ status: 204, description: 'The person may request mail and type codes again.' }],
      errors: [],
      async handle({ params, ...input }) {
        const { email } = await findUser(params.user_id)
        if (!email) throw notFound()
        await magicLinks.clearLimits(email, toActedBy(input))
        return NO_CONTENT
      },
    }),
  ]

  async function findUser(id: string): Promise<User> {
    const user = await users.get(id)
    if (!user) throw notFound()
    return user
  }
}
