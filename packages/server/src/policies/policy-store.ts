import type { Instant } from '../clock.ts'
import type { PolicyOverrides, StoredPolicies } from './policy.ts'

export interface PolicyStore {
  /** Null until `lock` was called for the first time. */
  find(): Promise<StoredPolicies | null>
  /**
   * Like `find`, with a lock: other changes wait until the transaction ends. Inserts a row without policies, dated 0,
   * if there is none.
   */
  lock(): Promise<StoredPolicies>
}

/** Changes by administrators, which only audited transactions have. endings/facts.ts defines what they record. */
export interface AdministrativePolicyChanges {
  /** Replaces all policies. Call it only after `lock`. */
  set(policies: PolicyOverrides, at: Instant): Promise<StoredPolicies>
}
