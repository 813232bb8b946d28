import type { Scopes } from '../api-keys/api-key.ts'
import { type MicroDollars, TRIAL_CREDIT } from '../billing/money.ts'
import { DAY, type Instant } from '../clock.ts'
import { invalidRequest, type KeywayError } from '../errors.ts'
import type { LimitPolicy } from '../limits/policy.ts'
import { type EmailAddress, parseEmailAddress } from '../users/email-address.ts'

/** Who may sign up: anybody, addresses of listed domains, or invited addresses. */
export const SIGN_UP_MODES = ['open', 'domains', 'invited'] as const
export type SignUpMode = (typeof SIGN_UP_MODES)[number]

/** A hundred years. */
export const MAX_LIFETIME_DAYS = 36_500
export const MAX_SIGN_UP_DOMAINS = 100

/** What administrators decide for the whole service. */
export interface Policies extends LimitPolicy {
  /** Maximum lifetime of new keys; null for no maximum. A key that never expires exceeds every maximum. */
  maxKeyLifetimeDays: number | null
  keyExpiryRequired: boolean
  /** The lifetime that the form for a new key preselects; it is not enforced. */
  defaultKeyLifetimeDays: number
  /** The scopes that new keys with scopes may have; null for all. */
  allowedScopes: readonly string[] | null
  /** Whether new keys may have no scopes, which means all permissions. */
  unrestrictedKeysAllowed: boolean
  signUp: SignUpMode
  /** The domains whose addresses may sign up if `signUp` is `domains`, in lower case. Subdomains are not included. */
  signUpDomains: readonly string[]
  /** The initial balance of new accounts. */
  trialCredit: MicroDollars
}

/** The policies that administrators set; all others have their defaults. */
export type PolicyOverrides = { readonly [Name in keyof Policies]?: Policies[Name] }

/** A change of some policies; null returns a policy to its default. */
export type PolicyChange = { [Name in keyof Policies]?: Policies[Name] | null }

export interface StoredPolicies {
  policies: PolicyOverrides
  /** Increases with every change, even after the clock stepped back. */
  changedAt: Instant
}

const DEFAULTS: Omit<Policies, keyof LimitPolicy> = {
  maxKeyLifetimeDays: null,
  keyExpiryRequired: false,
  defaultKeyLifetimeDays: 90,
  allowedScopes: null,
  unrestrictedKeysAllowed: true,
  signUp: 'open',
  signUpDomains: [],
  trialCredit: TRIAL_CREDIT,
}

/**
 * The policies in force: those that administrators set, otherwise the defaults.
 * @param settings limits from the environment, in force unless policies set others
 */
export function policiesInForce(overrides: PolicyOverrides, settings: LimitPolicy): Policies {
  const { keyLimits, keyDefaults, personLimits } = settings
  return { ...DEFAULTS, keyLimits, keyDefaults, personLimits, ...overrides }
}

/** @throws KeywayError `invalid_request` if the result contradicts itself */
export function applyChange(
  overrides: PolicyOverrides,
  change: PolicyChange,
  settings: LimitPolicy,
): PolicyOverrides {
  const givenChanges = Object.entries(change).filter(([, value]) => value !== undefined)
  const mergedPolicies = { ...overrides, ...Object.fromEntries(givenChanges) }
  const result = Object.fromEntries(
    Object.entries(mergedPolicies).filter(([, value]) => value !== null),
  ) as PolicyOverrides
  assertConsistent(policiesInForce(result, settings))
  return result
}

function assertConsistent({ signUp, signUpDomains, keyLimits, keyDefaults }: Policies): void {
  if (signUp === 'domains' && signUpDomains.length === 0)
    throw invalidRequest([
      {
        field: 'sign_up_domains',
        message: 'must name at least one domain where sign_up is "domains", for example ["example.com"]',
      },
    ])
  for (const { per, limit } of keyLimits)
    if (keyDefaults.some(each => each.per === per && each.limit > limit))
      throw invalidRequest([
        {
          field: 'key_limits.defaults.requests',
          message: `must be at most the maximum of ${limit} per ${per}`,
        },
      ])
}

export interface RestrictedProperties {
  scopes: Scopes
  expiresAt: Instant | null
}

/** Why a new key is refused: the field, and a sentence that names the policy. */
export interface Violation {
  field: 'scopes' | 'expires_at'
  message: string
}

/** How a key that is created at `createdAt` violates the first policy that forbids it; null if none does. */
export function violationOf(
  { scopes, expiresAt }: RestrictedProperties,
  policies: Policies,
  createdAt: Instant,
): Violation | null {
  const { maxKeyLifetimeDays: days, keyExpiryRequired, allowedScopes, unrestrictedKeysAllowed } = policies
  if (expiresAt === null && keyExpiryRequired)
    return { field: 'expires_at', message: 'is required by the policy key_expiry_required' }
  if (days !== null && (expiresAt === null || expiresAt > createdAt + days * DAY))
    return {
      field: 'expires_at',
      message: `must be at most ${days} ${days === 1 ? 'day' : 'days'} ahead by the policy max_key_lifetime_days`,
    }
  if (scopes === null)
    return unrestrictedKeysAllowed
      ? null
      : { field: 'scopes', message: 'must not be empty by the policy unrestricted_keys_allowed' }
  const forbiddenScope = allowedScopes && scopes.find(scope => !allowedScopes.includes(scope))
  return forbiddenScope
    ? {
        field: 'scopes',
        message: `must not contain ${forbiddenScope} by the policy allowed_scopes, which allows ${allowedScopes.join(', ')}`,
      }
    : null
}

/** @throws KeywayError `invalid_request` that names the policy */
export function assertAllowed(key: RestrictedProperties, policies: Policies, createdAt: Instant): void {
  const violation = violationOf(key, policies, createdAt)
  if (violation) throw policyError(violation)
}

export function policyError(violation: Violation): KeywayError {
  return invalidRequest([{ ...violation }])
}

/** The lifetime that the form for a new key preselects, within the maximum. */
export function defaultLifetimeDays({ defaultKeyLifetimeDays, maxKeyLifetimeDays }: Policies): number {
  return Math.min(defaultKeyLifetimeDays, maxKeyLifetimeDays ?? MAX_LIFETIME_DAYS)
}

/** The domain in lower case; null for anything but one plain domain. */
export function parseDomain(text: string): string | null {
  const email = parseEmailAddress(`a@${text.trim()}`)
  return email && domainOf(email)
}

function domainOf(email: EmailAddress): string {
  return email.slice(email.indexOf('@') + 1)
}

/** Whether the address may sign up without an invitation. */
export function admitsSignUp({ signUp, signUpDomains }: Policies, email: EmailAddress): boolean {
  if (signUp === 'open') return true
  return signUp === 'domains' && signUpDomains.includes(domainOf(email))
}
