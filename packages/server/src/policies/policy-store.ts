import type { Instant } from '../clock.ts'
import type { PolicyOverrides, StoredPolicies } from './policy.ts'

export interface PolicyStore {
  /** Null until policies are set for the first time. */
  find(): Promise<StoredPolicies | null>
  /** Like `find`, with a lock: other changes wait until the transaction ends. */
  lock(): Promise<StoredPolicies>
}

/** Changes by administrators, which only audited transactions have. endings/facts.ts defines what they record. */
export interface AdministrativePolicyChanges {
  /** Replaces all policies. Call it only after `lock`. */
  set(policies: PolicyOverrides, at: Instant): Promise<StoredPolicies>
}
