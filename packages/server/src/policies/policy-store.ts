import type { Instant } from '../clock.ts'
import type { SetPolicies, StoredPolicies } from './policy.ts'

export interface PolicyStore {
  /** Null until policies are set for the first time. */
  find(): Promise<StoredPolicies | null>
  /** Like `find`, with a lock: other changes wait until the transaction ends. */
  lock(): Promise<StoredPolicies>
}

/** Administrative: only audited transactions have these operations. endings/facts.ts records their facts too. */
export interface AdministrativePolicyChanges {
  /** Replaces all policies. Only after `lock`. */
  set(policies: SetPolicies, at: Instant): Promise<StoredPolicies>
}
