import { ERROR_CODES } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { REFILL_PERIODS, REQUEST_WINDOWS, SPEND_PERIODS } from '../limits/limit.ts'
import { EXAMPLE_IDS } from './example-ids.ts'
import type { DocumentedAnswer } from './route.ts'

/*
 * Schemas of responses, each with an example. The OpenAPI document is generated from them, and the tests validate
 * every response against them.
 */

const id = z.uuid()
const instant = z.iso.datetime({ precision: 3 })
const count = z.int().min(0)
const nullable = <Schema extends z.ZodType>(schema: Schema) => z.union([schema, z.null()])

const EXAMPLE_AT = '2026-11-20T19:22:00.000Z'
const EXAMPLE_LATER = '2026-12-20T19:22:00.000Z'
export const EXAMPLE_KEY = 'svc_EXAMPLEexample0000000000000000EX'
export const JWT_EXAMPLE = 'eyJhbGciOiJFZERTQSJ9.eyJleGFtcGxlIjp0cnVlfQ.c2lnbmF0dXJl'

/** The limits of a key in a response; an empty object if it has none. */
export const limits = z
  .strictObject({
    requests: z.array(z.strictObject({ limit: count, per: z.enum(REQUEST_WINDOWS) })).optional(),
    spend: z.array(z.strictObject({ amount: z.string(), per: z.enum(SPEND_PERIODS) })).optional(),
    quota: z
      .strictObject({
        remaining: count,
        refill: z.strictObject({ amount: count, every: z.enum(REFILL_PERIODS) }).optional(),
      })
      .optional(),
  })
  .meta({ id: 'Limits' })

export const apiKey = z
  .strictObject({
    id,
    user_id: id,
    key_prefix: z.string().length(12),
    name: nullable(z.string()),
    app_id: z.string(),
    scopes: z.array(z.string()),
    unrestricted: z.boolean(),
    allowed_networks: z.array(z.string()),
    status: z.enum(['active', 'expired', 'revoked']),
    created_at: instant,
    last_used_at: nullable(instant),
    last_used_from: nullable(z.strictObject({ network: z.string(), client: nullable(z.string()) })),
    expires_at: nullable(instant),
    revoked_at: nullable(instant),
    replaced_by: nullable(id),
    external_id: nullable(z.string()),
    metadata: nullable(z.record(z.string(), z.unknown())),
    limits,
    operator_limits: limits,
  })
  .meta({ id: 'ApiKey' })

export const apiKeyExample = {
  id: EXAMPLE_IDS.key,
  user_id: EXAMPLE_IDS.user,
  key_prefix: EXAMPLE_KEY.slice(0, 12),
  name: 'Laptop',
  app_id: 'service-sdk',
  scopes: ['agent:connect'],
  unrestricted: false,
  allowed_networks: [],
  status: 'active',
  created_at: EXAMPLE_AT,
  last_used_at: null,
  last_used_from: null,
  expires_at: EXAMPLE_LATER,
  revoked_at: null,
  replaced_by: null,
  external_id: 'customer-42',
  metadata: { plan: 'pro' },
  limits: { requests: [{ limit: 100, per: 'minute' }] },
  operator_limits: {},
}

export const createdApiKey = apiKey
  .extend({ key: z.string().regex(/^svc_[0-9A-Za-z]{32}$/) })
  .meta({ id: 'CreatedApiKey', description: 'The one answer that holds the whole key.' })

export const createdApiKeyExample = { ...apiKeyExample, key: EXAMPLE_KEY }

export const user = z
  .strictObject({
    id,
    email: z.string(),
    name: nullable(z.string()),
    role: z.enum(['user', 'support', 'admin']),
    status: z.enum(['active', 'suspended', 'deleted']),
    created_at: instant,
    locale: nullable(z.string()),
  })
  .meta({ id: 'User' })

export const userExample = {
  id: EXAMPLE_IDS.user,
  email: 'ada@example.com',
  name: null,
  role: 'user',
  status: 'active',
  created_at: EXAMPLE_AT,
  locale: 'de',
}

export const sessionWithTokens = z
  .strictObject({
    user,
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: count,
    refresh_token: z.string(),
    refresh_expires_in: count,
    session_id: id,
  })
  .meta({ id: 'SessionAnswer' })

export const sessionWithTokensExample = {
  user: userExample,
  access_token: JWT_EXAMPLE,
  token_type: 'Bearer',
  expires_in: 900,
  refresh_token: 'svr_bm90LWEtcmVhbC10b2tlbg',
  refresh_expires_in: 2_592_000,
  session_id: EXAMPLE_IDS.session,
}

export const signIn = sessionWithTokens.extend({ is_new_user: z.boolean() }).meta({ id: 'SignInAnswer' })
export const signInExample = { ...sessionWithTokensExample, is_new_user: true }

export const sentLink = z.strictObject({ status: z.literal('sent'), expires_in: count, login_id: z.string() })
export const sentLinkExample = { status: 'sent', expires_in: 300, login_id: EXAMPLE_IDS.login }

export const agentToken = z.strictObject({ token: z.string(), agent_id: id, expires_in: count })
export const agentTokenExample = { token: JWT_EXAMPLE, agent_id: EXAMPLE_IDS.user, expires_in: 900 }

export const introspection = z.looseObject({ active: z.boolean() }).meta({ id: 'IntrospectionAnswer' })
export const introspectionExample = { active: false }

export const sessionItem = z
  .strictObject({
    id,
    created_at: instant,
    last_used_at: instant,
    expires_at: instant,
    app_id: z.string(),
    client: nullable(z.string()),
    network: z.string(),
    current: z.boolean(),
  })
  .meta({ id: 'Session' })

export const sessionItemExample = {
  id: EXAMPLE_IDS.session,
  created_at: EXAMPLE_AT,
  last_used_at: EXAMPLE_AT,
  expires_at: EXAMPLE_LATER,
  app_id: 'console',
  client: 'curl/8.5.0',
  network: '203.0.113.7',
  current: true,
}

const money = z.string().regex(/^-?\d+\.\d{2,6}$/)

export const chargeAuthorization = z
  .strictObject({ app_id: z.string(), name: z.string(), granted_at: instant, revoked_at: nullable(instant) })
  .meta({ id: 'ChargeAuthorization' })

export const chargeAuthorizationExample = {
  app_id: 'console',
  name: 'Console',
  granted_at: EXAMPLE_AT,
  revoked_at: null,
}

export const consent = z
  .strictObject({ app_id: z.string(), name: z.string(), scopes: z.array(z.string()), granted_at: instant })
  .meta({ id: 'Consent' })

export const consentExample = {
  app_id: 'shop',
  name: 'The Shop',
  scopes: ['email', 'openid', 'profile'],
  granted_at: EXAMPLE_AT,
}

const emailChange = z
  .strictObject({
    email: z.string(),
    awaits: z.array(z.enum(['old', 'new'])),
    created_at: instant,
    expires_at: instant,
  })
  .meta({ id: 'EmailChange' })

export const account = z
  .strictObject({
    user,
    balance: z.strictObject({ amount: money, currency: z.literal('USD') }),
    subscription: z.strictObject({ plan: z.string(), status: z.string(), started_at: instant }),
    charge_authorizations: z.array(chargeAuthorization),
    email_change: nullable(emailChange),
    deletes_at: nullable(instant),
  })
  .meta({ id: 'Account' })

export const accountExample = {
  user: userExample,
  balance: { amount: '2.00', currency: 'USD' },
  subscription: { plan: 'free', status: 'active', started_at: EXAMPLE_AT },
  charge_authorizations: [chargeAuthorizationExample],
  email_change: null,
  deletes_at: null,
}

export const ledgerEntry = z
  .strictObject({
    id,
    kind: z.string(),
    amount: money,
    balance_after: money,
    app_id: nullable(z.string()),
    key_id: nullable(id),
    description: z.string(),
    created_at: instant,
  })
  .meta({ id: 'LedgerEntry' })

export const ledgerEntryExample = {
  id: EXAMPLE_IDS.entry,
  kind: 'charge',
  amount: '-0.25',
  balance_after: '1.75',
  app_id: 'hub',
  key_id: null,
  description: '1000 messages',
  created_at: EXAMPLE_AT,
}

export const usageBucket = z
  .strictObject({
    start: instant,
    exchanges: count,
    api_calls: count,
    introspections: count,
    refused: z.record(z.string(), count).meta({
      description: 'By error code; only genuine keys are counted, and codes that did not occur are absent.',
    }),
    connections: count,
    connected_seconds: count,
    messages_sent: count,
    messages_received: count,
    charged: money,
  })
  .meta({ id: 'UsageBucket' })

export const usageBucketExample = {
  start: '2026-11-20T00:00:00.000Z',
  exchanges: 96,
  api_calls: 12,
  introspections: 4,
  refused: { api_key_expired: 2 },
  connections: 1,
  connected_seconds: 86_400,
  messages_sent: 40,
  messages_received: 38,
  charged: '0.25',
}

export const usageCsvExample =
  'start,exchanges,api_calls,introspections,refused,connections,connected_seconds,messages_sent,messages_received,charged,refused_api_key_expired\r\n2026-11-20T00:00:00.000Z,96,12,4,2,1,86400,40,38,0.25,2\r\n'

export const securityEvent = z
  .strictObject({
    id,
    type: z.string(),
    at: instant,
    network: nullable(z.string()),
    client: nullable(z.string()),
    key_id: id.optional(),
    session_id: id.optional(),
  })
  .meta({ id: 'SecurityEvent' })

export const securityEventExample = {
  id: EXAMPLE_IDS.event,
  type: 'sign_in',
  at: EXAMPLE_AT,
  network: '203.0.113.7',
  client: 'curl/8.5.0',
  session_id: EXAMPLE_IDS.session,
}

export const connection = z
  .strictObject({
    connection_id: id,
    key_id: id,
    key_name: nullable(z.string()),
    connected_at: instant,
    address: z.string(),
    client: nullable(z.string()),
  })
  .meta({ id: 'AgentConnection' })

export const connectionExample = {
  connection_id: EXAMPLE_IDS.connection,
  key_id: EXAMPLE_IDS.key,
  key_name: 'Laptop',
  connected_at: EXAMPLE_AT,
  address: '203.0.113.7',
  client: 'keyway-sdk/0.1.0',
}

export const revocation = z
  .strictObject({
    id,
    kind: z.enum(['api_key', 'session', 'user']),
    subject_id: id,
    user_id: id,
    at: instant,
  })
  .meta({ id: 'Revocation' })

export const revocations = z.strictObject({
  data: z.array(revocation),
  has_more: z.boolean(),
  next_cursor: z.string(),
})

export const revocationsExample = {
  data: [
    {
      id: EXAMPLE_IDS.event,
      kind: 'api_key',
      subject_id: EXAMPLE_IDS.key,
      user_id: EXAMPLE_IDS.user,
      at: EXAMPLE_AT,
    },
  ],
  has_more: false,
  next_cursor: 'bWg4dTV4aGMuMDE5YWEyYzQ',
}

export const problem = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(ERROR_CODES),
    request_id: id,
    errors: z.array(z.strictObject({ field: z.string(), message: z.string() })).optional(),
    retry_after: count.optional(),
    window: z.enum(['minute', 'hour', 'day']).optional(),
    setting: z.string().optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457.' })

export const introspections = z.strictObject({
  data: z.array(z.union([introspection, z.strictObject({ error: problem })])),
})
export const introspectionsExample = { data: [introspectionExample] }

/** The response of a successful call, for the documentation. */
export function okAnswer(description: string, schema: z.ZodType, example: unknown): DocumentedAnswer {
  return { status: 200, description, schema, example }
}

/** The response of a call that lists objects page by page, for the documentation. */
export function pageAnswer(description: string, item: z.ZodType, example: unknown): DocumentedAnswer {
  const schema = z.strictObject({
    data: z.array(item),
    has_more: z.boolean(),
    next_cursor: nullable(z.string()),
  })
  return okAnswer(description, schema, { data: [example], has_more: false, next_cursor: null })
}
