import { z } from 'zod'
import { type AppSettings, isAppId, isClientUrl } from '../../../apps/app.ts'
import { toRfc3339 } from '../../../clock.ts'
import { KeywayError } from '../../../errors.ts'
import { SIGNING_ALGS } from '../../../signing-keys/signing-key.ts'
import { created, NO_CONTENT, ok } from '../../answer.ts'
import { appObject } from '../../app-object.ts'
import { appId, expected, optional, parsed, text } from '../../body-fields.ts'
import { EXAMPLE_IDS } from '../../example-ids.ts'
import type { HttpPorts } from '../../http-ports.ts'
import * as answers from '../../openapi-schemas.ts'
import { pageQuery } from '../../query.ts'
import { type Route, route } from '../../route.ts'
import { reason, reasonBody, TAG, toActedBy } from './acting.ts'

const MAX_LIST_LENGTH = 64
const MAX_TEXT_LENGTH = 2048

const flag = z.boolean({ error: expected('true or false', 'true') })
const url = text('a URL, or empty to remove it', 'https://shop.example.com', { max: MAX_TEXT_LENGTH })
const urls = z
  .array(text('a URL', 'https://shop.example.com/callback', { max: MAX_TEXT_LENGTH }), {
    error: expected('a list of URLs', '["https://shop.example.com/callback"]'),
  })
  .max(MAX_LIST_LENGTH, { error: `must have at most ${MAX_LIST_LENGTH} entries` })

/**
 * The settings of an app, which are the options of `keyway apps add`. apps/app-settings.ts validates their values, with
 * errors that name the field.
 */
const settings = {
  audience: optional(url),
  verify_url: optional(url),
  redirect_uris: optional(urls),
  logout_uris: optional(urls),
  backchannel_logout_uri: optional(url),
  token_alg: optional(z.enum(SIGNING_ALGS, { error: `must be one of ${SIGNING_ALGS.join(', ')}` })),
  id_token_alg: optional(z.enum(SIGNING_ALGS, { error: `must be one of ${SIGNING_ALGS.join(', ')}` })),
  scopes: optional(
    z
      .array(text('a scope', 'account:write', { max: 64 }), {
        error: expected('a list of scopes', '["keys:read"]'),
      })
      .max(MAX_LIST_LENGTH, { error: `must have at most ${MAX_LIST_LENGTH} entries` }),
  ),
  trusted: optional(flag),
  public: optional(flag),
  jwks_uri: optional(url),
  require_pkce: optional(flag),
  reason: optional(reason),
}
const appName = text('a name', 'The shop', { min: 1, max: 100 })
const newApp = z.strictObject({ id: appId, name: appName, adopt: optional(flag), ...settings })
const appChange = z.strictObject({ name: optional(appName), ...settings })
type Change = z.output<typeof appChange>

/** Fields of a change that grant no right to anybody, so that no session is needed: a key may change them too. */
const HARMLESS_SETTINGS: ReadonlySet<string> = new Set([
  'name',
  'token_alg',
  'id_token_alg',
  'require_pkce',
  'reason',
])

const nullable = <Schema extends z.ZodType>(schema: Schema) => z.union([schema, z.null()])
const instant = z.iso.datetime({ precision: 3 })
const app = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    first_party: z.boolean(),
    audience: nullable(z.string()),
    verify_url: nullable(z.string()),
    redirect_uris: z.array(z.string()),
    logout_uris: z.array(z.string()),
    backchannel_logout_uri: nullable(z.string()),
    token_alg: z.enum(SIGNING_ALGS),
    id_token_alg: z.enum(SIGNING_ALGS),
    scopes: z.array(z.string()),
    trusted: z.boolean(),
    public: z.boolean(),
    jwks_uri: nullable(z.string()),
    require_pkce: z.boolean(),
    created_at: instant,
    covers_from: nullable(instant),
  })
  .meta({ id: 'App' })
const appExample = {
  id: 'shop',
  name: 'The shop',
  first_party: false,
  audience: null,
  verify_url: null,
  redirect_uris: ['https://shop.example.com/callback'],
  logout_uris: [],
  backchannel_logout_uri: null,
  token_alg: 'EdDSA',
  id_token_alg: 'RS256',
  scopes: [],
  trusted: false,
  public: false,
  jwks_uri: null,
  require_pkce: false,
  created_at: '2026-11-20T19:22:00.000Z',
  covers_from: '2026-11-20T19:22:00.000Z',
}
const appAnswer = { schema: app, example: appExample }
const secret = z.strictObject({ id: z.uuid(), created_at: instant }).meta({ id: 'AppSecret' })
const secretExample = { id: EXAMPLE_IDS.secret, created_at: '2026-11-20T19:22:00.000Z' }
const newSecret = z.strictObject({ id: z.uuid(), secret: z.string() }).meta({ id: 'NewAppSecret' })

const appsQuery = z.object({
  limit: pageQuery.shape.limit,
  cursor: parsed('a cursor', 'c2hvcA', readCursor).optional(),
  self_registered: z
    .enum(['true', 'false'], { error: 'must be true or false' })
    .optional()
    .meta({ description: 'Only apps that registered themselves, or only those of the operator.' }),
})

/** Registered apps, with the operations of the `keyway apps` commands. */
export function appRoutes({ apps }: Pick<HttpPorts, 'apps'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/admin/apps',
      operation: 'listApps',
      tag: TAG,
      summary: 'List the registered apps',
      description: 'In the order of their ids.',
      access: 'admin:read',
      query: appsQuery,
      answers: [answers.pageAnswer('One page of apps.', app, appExample)],
      errors: [],
      async handle({ query: { limit, cursor, self_registered } }) {
        const selfRegistered = self_registered === undefined ? undefined : self_registered === 'true'
        const rows = await apps.page({ limit, after: cursor ?? null, selfRegistered })
        const data = rows.slice(0, limit).map(appObject)
        const next_cursor = rows.length > limit ? Buffer.from(data.at(-1)!.id).toString('base64url') : null
        return ok({ data, has_more: next_cursor !== null, next_cursor })
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/apps',
      operation: 'registerApp',
      tag: TAG,
      summary: 'Register an app, which is an OAuth client',
      description:
        'Only this response contains the secret, of an app that has one. With `adopt` the app has rights also over keys and sessions that were created under its id before; `older` counts those.',
      access: 'admin:session',
      body: newApp,
      example: { id: 'store', name: 'The store', redirect_uris: ['https://shop.example.com/callback'] },
      answers: [
        {
          status: 201,
          description: 'The app, and `secret`.',
          schema: app
            .extend({
              secret: nullable(z.string()),
              older: z.strictObject({ keys: z.int(), sessions: z.int() }),
            })
            .meta({ id: 'RegisteredApp' }),
          example: { ...appExample, secret: 'sva_EXAMPLE', older: { keys: 0, sessions: 0 } },
        },
      ],
      errors: [],
      async handle({ body, ...input }) {
        const { id, name, adopt } = body
        const actedBy = toActedBy(input, body.reason ?? null)
        const {
          app: registeredApp,
          older,
          secret,
        } = await apps.register({ ...settingsOf(body), id, name, adopt }, actedBy)
        return created({
          ...appObject(registeredApp),
          secret,
          older: { keys: older.keys, sessions: older.sessions },
        })
      },
    }),
    route({
      method: 'GET',
      path: '/v1/admin/apps/{app_id}',
      operation: 'getApp',
      tag: TAG,
      summary: 'Read an app',
      description: 'With the ids of its secrets, newest first; of a secret itself only a hash is stored.',
      access: 'admin:read',
      answers: [
        {
          status: 200,
          description: 'The app.',
          schema: app.extend({ secrets: z.array(secret) }).meta({ id: 'AppWithSecrets' }),
          example: { ...appExample, secrets: [secretExample] },
        },
      ],
      errors: [],
      async handle({ params: { app_id } }) {
        const [storedApp, secrets] = await Promise.all([apps.find(app_id), apps.secrets(app_id)])
        const secretObjects = secrets.map(({ id, createdAt }) => ({ id, created_at: toRfc3339(createdAt) }))
        return ok({ ...appObject(storedApp), secrets: secretObjects })
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/admin/apps/{app_id}',
      operation: 'updateApp',
      tag: TAG,
      summary: 'Change an app',
      description:
        'Omitted fields stay, lists are replaced, an empty text removes. A key may change `name`, `token_alg`, `id_token_alg` and `require_pkce`; the rest gives rights and needs a signed-in administrator. The settings of a client that describes itself at a URL come from there: 403 `forbidden`.',
      access: 'admin:write',
      body: appChange,
      example: { name: 'The other shop' },
      answers: [{ status: 200, description: 'The app.', ...appAnswer }],
      errors: [],
      async handle({ params, body, ...input }) {
        const grantsRights = Object.entries(body).some(
          ([name, value]) => value !== undefined && !HARMLESS_SETTINGS.has(name),
        )
        if (grantsRights && !input.principal.session)
          throw new KeywayError(
            'session_required',
            'What gives an app rights needs a signed-in administrator. Send an access token, or use the keyway command.',
          )
        const actedBy = toActedBy(input, body.reason ?? null)
        return ok(appObject(await apps.change(params.app_id, settingsOf(body), actedBy)))
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/apps/{app_id}',
      operation: 'removeApp',
      tag: TAG,
      summary: 'Remove an app',
      description: 'Its secrets, sessions and authorisations end, on every node. First-party apps stay.',
      access: 'admin:write',
      answers: [{ status: 204, description: 'It is removed.' }],
      errors: [],
      async handle({ params, ...input }) {
        await apps.remove(params.app_id, toActedBy(input))
        return NO_CONTENT
      },
    }),
    route({
      method: 'POST',
      path: '/v1/admin/apps/{app_id}/secrets',
      operation: 'createAppSecret',
      tag: TAG,
      summary: 'Create a new secret for an app',
      description: 'Only this response contains it. The previous one keeps working until another is created.',
      access: 'admin:session',
      body: reasonBody,
      example: {},
      answers: [
        {
          status: 201,
          description: 'The secret.',
          schema: newSecret,
          example: { id: EXAMPLE_IDS.secret, secret: 'sva_EXAMPLE' },
        },
      ],
      errors: [],
      async handle({ params, body, ...input }) {
        const { id, secret } = await apps.newSecret(params.app_id, toActedBy(input, body.reason ?? null))
        return created({ id, secret })
      },
    }),
    route({
      method: 'DELETE',
      path: '/v1/admin/apps/{app_id}/secrets/{secret_id}',
      operation: 'removeAppSecret',
      tag: TAG,
      summary: 'Remove a secret of an app',
      description: 'It is refused from now on, on every node; the other one keeps working.',
      access: 'admin:write',
      answers: [{ status: 204, description: 'It is removed.' }],
      errors: [],
      async handle({ params, ...input }) {
        await apps.removeSecret(params.app_id, params.secret_id, toActedBy(input))
        return NO_CONTENT
      },
    }),
  ]
}

/**
 * Decodes a cursor: the id after which the page begins; null if it is no id of an app. Forging one only chooses another
 * page.
 */
function readCursor(text: string): string | null {
  const id = text.length <= MAX_TEXT_LENGTH ? Buffer.from(text, 'base64url').toString() : ''
  return isAppId(id) || isClientUrl(id) ? id : null
}

/** The settings that a body contains. An empty text clears a setting. */
function settingsOf(body: Change): Partial<AppSettings> {
  const emptyToNull = (value: string | undefined) => (value === '' ? null : value)
  const allSettings: { [Name in keyof AppSettings]: AppSettings[Name] | undefined } = {
    name: body.name,
    audience: emptyToNull(body.audience),
    verifyUrl: emptyToNull(body.verify_url),
    redirectUris: body.redirect_uris,
    logoutUris: body.logout_uris,
    backchannelLogoutUri: emptyToNull(body.backchannel_logout_uri),
    tokenAlg: body.token_alg,
    idTokenAlg: body.id_token_alg,
    scopes: body.scopes,
    trusted: body.trusted,
    isPublic: body.public,
    jwksUri: emptyToNull(body.jwks_uri),
    requirePkce: body.require_pkce,
  }
  const entries = Object.entries(allSettings).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Partial<AppSettings>
}
