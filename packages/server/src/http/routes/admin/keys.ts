import { z } from 'zod'
import type { Clock } from '../../../clock.ts'
import { parseId } from '../../../ids.ts'
import { ok } from '../../answer.ts'
import { createKeyObjects } from '../../api-key-object.ts'
import { instant, optional, parsed } from '../../body-fields.ts'
import { EXAMPLE_IDS } from '../../example-ids.ts'
import type { HttpPorts } from '../../http-ports.ts'
import { externalId } from '../../key-attachments.ts'
import { limits } from '../../limits-object.ts'
import { notFound } from '../../not-found.ts'
import * as answers from '../../openapi-schemas.ts'
import { pageQuery } from '../../query.ts'
import { type Route, route } from '../../route.ts'
import { reason, TAG, toActedBy } from './acting.ts'

const MAX_REVOKED_KEYS = 100

const idField = parsed('an id', EXAMPLE_IDS.user, parseId)

const keysQuery = pageQuery.extend({
  prefix: z
    .string()
    .regex(/^[\x21-\x7e]{1,12}$/, {
      error: 'must be the first characters of a key, at most 12, for example "svc_Ab3"',
    })
    .optional(),
  external_id: externalId.optional(),
  unused_since: instant
    .optional()
    .meta({ description: 'Active keys that were neither used nor created since then.' }),
  expires_before: instant
    .optional()
    .meta({ description: 'Active keys that expire before then, soonest first.' }),
  never_expires: z
    .literal('true', { error: 'must be true, or omitted' })
    .optional()
    .meta({ description: 'Active keys without an expiry.' }),
  violates_policy: z
    .literal('true', { error: 'must be true, or omitted' })
    .optional()
    .meta({ description: 'Active keys that the policies would refuse if they were made again as they are.' }),
})

const revocation = z.strictObject({
  key_ids: z
    .array(idField, { error: `must be a list of ids, for example ["${EXAMPLE_IDS.key}"]` })
    .min(1, { error: 'must have at least one id' })
    .max(MAX_REVOKED_KEYS, { error: `must have at most ${MAX_REVOKED_KEYS} ids` }),
  reason: optional(reason),
})

const keyChange = z.strictObject({ operator_limits: limits, reason: optional(reason) })

const keyAnswer = { schema: answers.apiKey, example: answers.apiKeyExample }

/** Calls of administrators about the keys of all people. */
export function keyRoutes(
  { apiKeys, policies, store }: Pick<HttpPorts, 'apiKeys' | 'policies' | 'store'>,
  clock: Clock,
): Route[] {
  const keyObjects = createKeyObjects(apiKeys, clock)

  return [
    route({
      method: 'GET',
      path: '/v1/admin/api-keys',
      operation: 'searchApiKeys',
      tag: TAG,
      summary: "List and search everybody's keys",
      description:
        'Newest first unless said otherwise. A page may have fewer entries than `limit`, or none, and still `has_more`: each call reads a bounded number of rows.',
      access: 'admin:read',
      query: keysQuery,
      answers: [answers.pageAnswer('One page of keys.', answers.apiKey, answers.apiKeyExample)],
      errors: [],
      async handle({
        query: { limit, cursor, prefix, external_id, unused_since, expires_before, never_expires, ...query },
      }) {
        const search = {
          prefixBeginning: prefix,
          externalId: external_id,
          unusedSince: unused_since,
          expiresBefore: expires_before,
          neverExpires: never_expires && (true as const),
          violating: query.violates_policy && (await policies.read()),
        }
        const slice = await store.apiKeys.search(search, clock.now(), { limit, after: cursor ?? null })
        return ok(await keyObjects.pageOf(slice))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/api-keys/{key_id}',
      operation: 'getAnyApiKey',
      tag: TAG,
      summary: "Read anybody's key",
      description: 'Never the key itself, which is not stored.',
      access: 'admin:read',
      answers: [{ status: 200, description: 'The key object.', ...keyAnswer }],
      errors: [],
      async handle({ params }) {
        const key = (await apiKeys.findMany([params.key_id])).get(params.key_id)
        if (!key) throw notFound()
        return ok(await keyObjects.objectOf(await apiKeys.get(key.userId, key.id)))
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/admin/api-keys/{key_id}',
      operation: 'limitApiKey',
      tag: TAG,
      summary: 'Set the operator limits of a key',
      description:
        'Replaces them; `{}` removes them. The owner sees and cannot change them; the stricter counts.',
      access: 'admin:write',
      body: keyChange,
      example: { operator_limits: { requests: [{ limit: 100, per: 'minute' }] } },
      answers: [{ status: 200, description: 'The key object.', ...keyAnswer }],
      errors: [],
      async handle({ params, body, ...input }) {
        const actedBy = toActedBy(input, body.reason ?? null)
        return ok(
          await keyObjects.objectOf(
            await apiKeys.setOperatorLimits(params.key_id, body.operator_limits, actedBy),
          ),
        )
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/api-keys/{key_id}',
      operation: 'revokeAnyApiKey',
      tag: TAG,
      summary: "Revoke anybody's key",
      description: 'Permanent. Repeating it changes nothing.',
      access: 'admin:write',
      answers: [{ status: 200, description: 'The key object with `revoked_at`.', ...keyAnswer }],
      errors: [],
      async handle({ params, ...input }) {
        return ok(await keyObjects.objectOf(await apiKeys.revokeById(params.key_id, toActedBy(input))))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/api-keys/revoke',
      operation: 'revokeApiKeys',
      tag: TAG,
      summary: 'Revoke many keys',
      description: `Up to ${MAX_REVOKED_KEYS}, one after the other. Unknown ids are left out of the answer. Repeating it changes nothing.`,
      access: 'admin:write',
      body: revocation,
      example: { key_ids: [EXAMPLE_IDS.key], reason: 'leaked' },
      answers: [
        {
          status: 200,
          description: 'The ids of the keys that are revoked now.',
          schema: z.strictObject({ revoked: z.array(z.uuid()) }),
          example: { revoked: [EXAMPLE_IDS.key] },
        },
      ],
      errors: [],
      async handle({ body, ...input }) {
        const actedBy = toActedBy(input, body.reason ?? null)
        const keys = await apiKeys.findMany(body.key_ids)
        for (const id of keys.keys()) await apiKeys.revokeById(id, actedBy)
        return ok({ revoked: [...keys.keys()] })
      },
    }),
  ]
}
