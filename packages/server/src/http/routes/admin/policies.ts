import { z } from 'zod'
import { formatMoney, parseAmountOrZero } from '../../../billing/money.ts'
import type { RequestLimit } from '../../../limits/limit.ts'
import {
  MAX_LIFETIME_DAYS,
  MAX_SIGN_UP_DOMAINS,
  type Policies,
  type PolicyChange,
  parseDomain,
  SIGN_UP_MODES,
} from '../../../policies/policy.ts'
import { ok } from '../../answer.ts'
import { expected, optional, parsed, strict, wholeNumber } from '../../body-fields.ts'
import type { HttpPorts } from '../../http-ports.ts'
import { scope } from '../../key-scopes.ts'
import { requestLimits } from '../../limits-object.ts'
import { type Route, route } from '../../route.ts'
import { reason, TAG, toActedBy } from './acting.ts'

const MAX_ALLOWED_SCOPES = 100

const days = wholeNumber(`whole days from 1 to ${MAX_LIFETIME_DAYS}`, 90, 1, MAX_LIFETIME_DAYS)
const flag = z.boolean({ error: expected('true or false', 'true') })
const AMOUNT_RULE = 'an amount of at most 1000000 in a string, with at most 6 decimal places'

const requestLimitsField = strict({ requests: optional(requestLimits) })

/** A field that is null resets its policy to the default. */
const policyChange = z.strictObject({
  max_key_lifetime_days: days.nullish(),
  key_expiry_required: flag.nullish(),
  default_key_lifetime_days: days.nullish(),
  allowed_scopes: z
    .array(scope, { error: expected('a list of scopes, or null for all', '["agent:connect"]') })
    .min(1, { error: 'must have at least one scope; null allows all' })
    .max(MAX_ALLOWED_SCOPES, { error: `must have at most ${MAX_ALLOWED_SCOPES} entries` })
    .transform(list => [...new Set(list)])
    .nullish(),
  unrestricted_keys_allowed: flag.nullish(),
  sign_up: z
    .enum(SIGN_UP_MODES, { error: expected(`one of ${SIGN_UP_MODES.join(', ')}`, '"invited"') })
    .nullish(),
  sign_up_domains: z
    .array(parsed('a domain', 'example.com', parseDomain), {
      error: expected('a list of domains', '["example.com"]'),
    })
    .max(MAX_SIGN_UP_DOMAINS, { error: `must have at most ${MAX_SIGN_UP_DOMAINS} entries` })
    .transform(list => [...new Set(list)])
    .nullish(),
  trial_credit: parsed(AMOUNT_RULE, '2.00', parseAmountOrZero).nullish(),
  key_limits: strict({
    defaults: requestLimitsField.nullish(),
    maxima: requestLimitsField.nullish(),
  }).nullish(),
  person_limits: requestLimitsField.nullish(),
  reason: optional(reason),
})

const requestLimitsSchema = z.strictObject({
  requests: z.array(z.strictObject({ limit: z.int(), per: z.string() })),
})
const nullable = <Schema extends z.ZodType>(schema: Schema) => z.union([schema, z.null()])
const policies = z
  .strictObject({
    max_key_lifetime_days: nullable(z.int()),
    key_expiry_required: z.boolean(),
    default_key_lifetime_days: z.int(),
    allowed_scopes: nullable(z.array(z.string())),
    unrestricted_keys_allowed: z.boolean(),
    sign_up: z.enum(SIGN_UP_MODES),
    sign_up_domains: z.array(z.string()),
    trial_credit: z.string(),
    key_limits: z.strictObject({ defaults: requestLimitsSchema, maxima: requestLimitsSchema }),
    person_limits: requestLimitsSchema,
  })
  .meta({ id: 'Policies' })
const example = {
  max_key_lifetime_days: 365,
  key_expiry_required: true,
  default_key_lifetime_days: 90,
  allowed_scopes: null,
  unrestricted_keys_allowed: false,
  sign_up: 'domains',
  sign_up_domains: ['example.com'],
  trial_credit: '2.00',
  key_limits: { defaults: { requests: [] }, maxima: { requests: [{ limit: 50, per: 'second' }] } },
  person_limits: { requests: [] },
}
const policiesAnswer = { schema: policies, example }

/** Policies: restrictions of new keys, who may sign up, what new accounts get, and limits of all keys and people. */
export function policyRoutes({ policies: registry }: Pick<HttpPorts, 'policies'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/admin/policies',
      operation: 'getPolicies',
      tag: TAG,
      summary: 'Read the policies',
      description: 'Those in force: what was not set has its default, limits those of the settings.',
      access: 'admin:read',
      answers: [{ status: 200, description: 'The policies.', ...policiesAnswer }],
      errors: [],
      async handle() {
        return ok(policiesObject(await registry.read()))
      },
    }),
    route({
      method: 'PATCH',
      path: '/v1/admin/policies',
      operation: 'changePolicies',
      tag: TAG,
      summary: 'Change policies',
      description:
        'Omitted ones stay; null returns one to its default. They bind new keys and new accounts on every node from this answer on, limits within seconds; older keys stay (`GET /v1/admin/api-keys?violates_policy=true`).',
      access: 'admin:session',
      body: policyChange,
      example: { default_key_lifetime_days: 30, trial_credit: '1.00' },
      answers: [{ status: 200, description: 'The policies.', ...policiesAnswer }],
      errors: [],
      async handle({ body, ...input }) {
        return ok(
          policiesObject(await registry.change(changeOf(body), toActedBy(input, body.reason ?? null))),
        )
      },
    }),
  ]
}

export function policiesObject(values: Policies): z.infer<typeof policies> {
  const requestLimitsObject = (limits: readonly RequestLimit[]) => ({
    requests: limits.map(({ limit, per }) => ({ limit, per })),
  })
  return {
    max_key_lifetime_days: values.maxKeyLifetimeDays,
    key_expiry_required: values.keyExpiryRequired,
    default_key_lifetime_days: values.defaultKeyLifetimeDays,
    allowed_scopes: values.allowedScopes && [...values.allowedScopes],
    unrestricted_keys_allowed: values.unrestrictedKeysAllowed,
    sign_up: values.signUp,
    sign_up_domains: [...values.signUpDomains],
    trial_credit: formatMoney(values.trialCredit),
    key_limits: {
      defaults: requestLimitsObject(values.keyDefaults),
      maxima: requestLimitsObject(values.keyLimits),
    },
    person_limits: requestLimitsObject(values.personLimits),
  }
}

function changeOf(body: z.output<typeof policyChange>): PolicyChange {
  const keyLimits = body.key_limits
  return {
    maxKeyLifetimeDays: body.max_key_lifetime_days,
    keyExpiryRequired: body.key_expiry_required,
    defaultKeyLifetimeDays: body.default_key_lifetime_days,
    allowedScopes: body.allowed_scopes,
    unrestrictedKeysAllowed: body.unrestricted_keys_allowed,
    signUp: body.sign_up,
    signUpDomains: body.sign_up_domains,
    trialCredit: body.trial_credit,
    keyDefaults: keyLimits === null ? null : limitsOf(keyLimits?.defaults),
    keyLimits: keyLimits === null ? null : limitsOf(keyLimits?.maxima),
    personLimits: limitsOf(body.person_limits),
  }
}

function limitsOf(
  sent: z.output<typeof requestLimitsField> | null | undefined,
): RequestLimit[] | null | undefined {
  return sent && (sent.requests ?? [])
}
