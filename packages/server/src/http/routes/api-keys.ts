import { z } from 'zod'
import { administers, MAX_ALLOWED_NETWORKS, type Scopes, toScopes } from '../../api-keys/api-key.ts'
import { withinPageBytes } from '../../api-keys/metadata.ts'
import { DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS } from '../../api-keys/rotation.ts'
import { DEFAULT_KEY_APP_ID } from '../../apps/app.ts'
import type { Clock, Instant } from '../../clock.ts'
import { KEYS_CREATE } from '../../device-authorizations/keyway-cli.ts'
import { invalidRequest } from '../../errors.ts'
import { NO_LIMITS } from '../../limits/limit.ts'
import { parseCidr } from '../../network.ts'
import { assertFresh, isFresh, isTooOldForKey } from '../../sessions/reauthentication.ts'
import type { Session } from '../../sessions/session.ts'
import { created, ok } from '../answer.ts'
import { createKeyObjects } from '../api-key-object.ts'
import { appId, expected, instant, name, nullIfEmpty, optional, parsed, wholeNumber } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import { externalId, MAX_KEY_BODY_BYTES, MAX_KEY_BODY_VALUES, metadata } from '../key-attachments.ts'
import { scopes } from '../key-scopes.ts'
import { limits } from '../limits-object.ts'
import * as answers from '../openapi-schemas.ts'
import { pageQuery } from '../query.ts'
import { type Route, route } from '../route.ts'

const cidr = parsed(
  'a network in CIDR notation, with no address bits after the prefix',
  '203.0.113.0/24',
  parseCidr,
)

const allowedNetworks = z
  .array(cidr, { error: expected('a list of networks', '["203.0.113.0/24"]') })
  .max(MAX_ALLOWED_NETWORKS, { error: `must have at most ${MAX_ALLOWED_NETWORKS} entries` })
  .transform(list => [...new Set(list)])
  .meta({
    description: 'CIDRs that the key may be used from; empty means any.',
    examples: [['203.0.113.0/24']],
  })

const newKey = z.strictObject({
  name: optional(name),
  scopes: scopes.optional(),
  expires_at: optional(instant),
  app_id: optional(appId),
  allowed_networks: optional(allowedNetworks),
  external_id: optional(externalId),
  metadata: optional(metadata),
  limits: optional(limits),
})

const listQuery = pageQuery.extend({
  status: z
    .enum(['active', 'expired', 'revoked'], { error: 'must be active, expired or revoked' })
    .optional(),
  external_id: externalId.optional(),
})

/**
 * The empty value of a field removes what is stored; so does null for `external_id`, `metadata` and `limits`, whereas
 * null for `name` and `allowed_networks` changes nothing.
 */
const keyChange = z.strictObject({
  name: optional(name),
  allowed_networks: optional(allowedNetworks),
  external_id: externalId.nullable().optional(),
  metadata: metadata.nullable().optional(),
  limits: limits.nullish(),
})

const rotation = z.strictObject({
  overlap_seconds: optional(
    wholeNumber(
      `whole seconds from 0 to ${MAX_OVERLAP_SECONDS}`,
      DEFAULT_OVERLAP_SECONDS,
      0,
      MAX_OVERLAP_SECONDS,
    ),
  ),
})

const keyAnswer = { schema: answers.apiKey, example: answers.apiKeyExample }
const createdKeyAnswer = { schema: answers.createdApiKey, example: answers.createdApiKeyExample }
const TAG = 'API keys'

export function apiKeyRoutes(
  { apiKeys, deviceKeys, users }: Pick<HttpPorts, 'apiKeys' | 'deviceKeys' | 'users'>,
  clock: Clock,
): Route[] {
  const { objectOf, pageOf } = createKeyObjects(apiKeys, clock)
  return [
    route({
      method: 'POST',
      path: '/v1/api-keys',
      operation: 'createApiKey',
      tag: TAG,
      summary: 'Create a key',
      description:
        'Only this response contains the whole key. A key without scopes may do everything that its owner may; one without `expires_at` never expires. The access token of a device that was approved with `keys:create` creates one key, within ten minutes: with some or all of the approved scopes (all by default), for at most 90 days (the default).',
      access: KEYS_CREATE,
      body: newKey,
      maxBodyBytes: MAX_KEY_BODY_BYTES,
      maxJsonValues: MAX_KEY_BODY_VALUES,
      example: { name: 'Laptop', scopes: ['agent:connect'], expires_at: '2090-01-01T00:00:00Z' },
      answers: [{ status: 201, description: 'The key object, and `key`.', ...createdKeyAnswer }],
      errors: ['key_limit_reached', 'rate_limited', 'reauthentication_required'],
      async handle({ principal, body, caller }) {
        const fields = {
          name: nullIfEmpty(body.name) ?? null,
          expiresAt: assertInFuture(body.expires_at, clock.now()),
          appId: body.app_id ?? DEFAULT_KEY_APP_ID,
          allowedNetworks: body.allowed_networks ?? [],
          externalId: nullIfEmpty(body.external_id) ?? null,
          metadata: body.metadata ?? null,
          limits: body.limits,
        }
        const scopes = toScopes(body.scopes ?? [])
        if (principal.session) await assertMayCreateKey(scopes, principal.session)
        const { key, apiKey } = principal.session
          ? await apiKeys.create(principal.userId, { ...fields, scopes }, caller)
          : await deviceKeys.create(principal.appSession, { ...fields, scopes: body.scopes }, caller)
        return created({ ...(await objectOf(apiKey)), key })
      },
    }),
    route({
      method: 'GET',
      path: '/v1/api-keys',
      operation: 'listApiKeys',
      tag: TAG,
      summary: 'List your keys',
      description:
        'Newest first. Revoked keys stay visible as long as the account, expired ones for 400 days. A page with more than 256 KiB of metadata ends early, with `has_more`.',
      access: 'keys:read',
      query: listQuery,
      answers: [answers.pageAnswer('One page of keys.', answers.apiKey, answers.apiKeyExample)],
      errors: [],
      async handle({ principal, query }) {
        const pageRequest = { limit: query.limit, after: query.cursor ?? null }
        const { status = null, external_id: externalId } = query
        const slice = withinPageBytes(await apiKeys.list(principal.userId, status, pageRequest, externalId))
        return ok(await pageOf(slice))
      },
    }),
    route({
      method: 'GET',
      path: '/v1/api-keys/{key_id}',
      operation: 'getApiKey',
      tag: TAG,
      summary: 'Read one key',
      description: "Another user's key is answered like an unknown id.",
      access: 'keys:read',
      answers: [{ status: 200, description: 'The key object.', ...keyAnswer }],
      errors: [],
      async handle({ principal, params }) {
        return ok(await objectOf(await apiKeys.get(principal.userId, params.key_id)))
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/api-keys/{key_id}',
      operation: 'updateApiKey',
      tag: TAG,
      summary: 'Change a key',
      description:
        'Omitted fields stay unchanged. An empty name or external id removes it, as null does for `external_id`, `metadata` and `limits`; metadata and limits are replaced as a whole (a quota without `remaining` keeps what is left); an empty list of networks means any. With an API key, networks can only be narrowed and limits only tightened, those of any key.',
      access: 'keys:write',
      body: keyChange,
      maxBodyBytes: MAX_KEY_BODY_BYTES,
      maxJsonValues: MAX_KEY_BODY_VALUES,
      example: { name: 'Laptop' },
      answers: [{ status: 200, description: 'The key object.', ...keyAnswer }],
      errors: ['rate_limited'],
      async handle({ principal, params, body }) {
        const change = {
          name: nullIfEmpty(body.name),
          allowedNetworks: body.allowed_networks,
          externalId: body.external_id === '' ? null : body.external_id,
          metadata: body.metadata,
          limits: body.limits === null ? NO_LIMITS : body.limits,
        }
        const changer = principal.session ? 'person' : 'key'
        const apiKey = await apiKeys.update(principal.userId, params.key_id, change, changer)
        return ok(await objectOf(apiKey))
      },
    }),
    route({
      method: 'POST',
      path: '/v1/api-keys/{key_id}/rotate',
      operation: 'rotateApiKey',
      tag: TAG,
      summary: 'Replace a key',
      description:
        'A new key with the name, scopes, app, networks, limits (and what was used up of them), external id, metadata and the lifetime left of the old one, which stops working after the overlap (never later than before); 0 revokes it now. At the key limit one rotation with an overlap works until that ends; without one every rotation works.',
      access: 'session',
      body: rotation,
      example: { overlap_seconds: 3600 },
      answers: [{ status: 201, description: 'The new key object, and `key`.', ...createdKeyAnswer }],
      errors: [
        'api_key_inactive',
        'api_key_replaced',
        'key_limit_reached',
        'rate_limited',
        'reauthentication_required',
      ],
      async handle({ principal, params, body, caller }) {
        const overlap = body.overlap_seconds ?? DEFAULT_OVERLAP_SECONDS
        const { scopes } = await apiKeys.get(principal.userId, params.key_id)
        await assertMayCreateKey(scopes, principal.session)
        const { key, apiKey } = await apiKeys.rotate(principal.userId, params.key_id, overlap, caller)
        return created({ ...(await objectOf(apiKey)), key })
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/api-keys/{key_id}',
      operation: 'revokeApiKey',
      tag: TAG,
      summary: 'Revoke a key permanently',
      description:
        'No exchange that starts after this answer succeeds, on any node, and open connections of the key are closed. Repeating it changes nothing.',
      access: 'keys:write',
      answers: [{ status: 200, description: 'The key object with `revoked_at`.', ...keyAnswer }],
      errors: [],
      async handle({ principal, params, caller }) {
        return ok(await objectOf(await apiKeys.revoke(principal.userId, params.key_id, caller)))
      },
    }),
  ]

  /**
   * Requires that an administrator has signed in recently to create a key with administrative rights: such a key works
   * without any sign-in.
   *
   * @throws KeywayError `reauthentication_required`
   */
  async function assertMayCreateKey(scopes: Scopes, session: Session): Promise<void> {
    const now = clock.now()
    if (isFresh(session, now)) return
    const user = await users.get(session.userId)
    if (user && isTooOldForKey(administers(scopes), user, session, now)) assertFresh(session, now)
  }
}

function assertInFuture(expiresAt: Instant | undefined, now: Instant): Instant | null {
  if (expiresAt === undefined) return null
  if (expiresAt > now) return expiresAt
  throw invalidRequest([
    { field: 'expires_at', message: 'must be in the future, for example "2030-01-01T00:00:00Z"' },
  ])
}
