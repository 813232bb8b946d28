import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import type { AuditedState } from '../audit/audit-event.ts'
import { formatMoney } from '../billing/money.ts'
import type { Clock } from '../clock.ts'
import type { RequestLimit } from '../limits/limit.ts'
import type { LimitPolicy } from '../limits/policy.ts'
import type { Log } from '../log.ts'
import { createReloading, type Reloading } from '../reloading.ts'
import type { Storage, Store } from '../store.ts'
import { applyChange, type Policies, type PolicyChange, policiesInForce } from './policy.ts'

/** Reads the policies in force, caches them, and changes them. */
export interface PolicyRegistry extends Reloading {
  /** Reads the stored policies into memory, from where `current` returns them. */
  load(): Promise<void>
  /** The policies as this node last loaded them. Synchronous and cheap, since every exchange of a key calls it. */
  current(): Policies
  /**
   * Reads the stored policies. Decisions on new keys and accounts use it, so that a change binds at once on every node.
   */
  read(from?: Pick<Store, 'policies'>): Promise<Policies>
  /** Changes the given policies. @throws KeywayError `invalid_request` for a contradiction */
  change(change: PolicyChange, by: ActedBy): Promise<Policies>
}

export function createPolicies({
  storage,
  clock,
  audit,
  log,
  settings,
  reloadInterval,
}: {
  storage: Storage
  clock: Clock
  audit: Audit
  log: Log
  settings: LimitPolicy
  reloadInterval?: number
}): PolicyRegistry {
  let currentPolicies = policiesInForce({}, settings)
  let loadInProgress: Promise<void> = Promise.resolve()

  return {
    load,

    ...createReloading({
      storage,
      log,
      interval: reloadInterval,
      on: 'policies.changed',
      reload: load,
      failure: 'policies could not be read',
    }),

    current: () => currentPolicies,

    read,

    async change(change, by) {
      await audit.perform(by, async tx => {
        const { policies: before, changedAt } = await tx.policies.lock()
        const after = applyChange(before, change, settings)
        const auditedDifference = difference(
          policiesInForce(before, settings),
          policiesInForce(after, settings),
        )
        if (!auditedDifference && JSON.stringify(before) === JSON.stringify(after))
          return withoutChanges(null)
        await tx.policies.set(after, Math.max(clock.now(), changedAt + 1))
        tx.publish({ type: 'policies.changed' })
        const subject = { type: 'policies' as const, id: null, user_id: null }
        return auditedOutcome(null, {
          type: 'policies.changed',
          subject,
          ...(auditedDifference ?? NO_DIFFERENCE),
        })
      })
      await load()
      return currentPolicies
    },
  }

  /** Runs reads one after the other: of two concurrent ones, the one that ends last could have read older policies. */
  function load(): Promise<void> {
    loadInProgress = loadInProgress
      .catch(() => {})
      .then(async () => {
        currentPolicies = await read()
      })
    return loadInProgress
  }

  async function read(from: Pick<Store, 'policies'> = storage.store): Promise<Policies> {
    return policiesInForce((await from.policies.find())?.policies ?? {}, settings)
  }
}

const NO_DIFFERENCE = { before: null, after: null }

/** The policies that differ, before and after; null if none does. */
export function difference(
  before: Policies,
  after: Policies,
): { before: AuditedState; after: AuditedState } | null {
  const [oldState, newState] = [auditedPolicies(before), auditedPolicies(after)]
  const names = Object.keys(newState).filter(
    name => JSON.stringify(oldState[name]) !== JSON.stringify(newState[name]),
  )
  if (names.length === 0) return null
  const pick = (state: AuditedState) => Object.fromEntries(names.map(name => [name, state[name]!]))
  return { before: pick(oldState), after: pick(newState) }
}

function auditedPolicies(policies: Policies): AuditedState {
  const limits = (list: readonly RequestLimit[]) => list.map(({ limit, per }) => `${limit}/${per}`)
  return {
    max_key_lifetime_days: policies.maxKeyLifetimeDays,
    key_expiry_required: policies.keyExpiryRequired,
    default_key_lifetime_days: policies.defaultKeyLifetimeDays,
    allowed_scopes: policies.allowedScopes && [...policies.allowedScopes],
    unrestricted_keys_allowed: policies.unrestrictedKeysAllowed,
    sign_up: policies.signUp,
    sign_up_domains: [...policies.signUpDomains],
    trial_credit: formatMoney(policies.trialCredit),
    key_limits: { defaults: limits(policies.keyDefaults), maxima: limits(policies.keyLimits) },
    person_limits: limits(policies.personLimits),
  }
}
