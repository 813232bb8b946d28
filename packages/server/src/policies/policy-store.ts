import type { Instant } from '../clock.ts'
import type { SetPolicies, StoredPolicies } from './policy.ts'

export interface PolicyStore {
  /** Null until policies are set for the first time. */
  find(): Promise<StoredPolicies | null>
  /** The same; what others set waits until the transaction ends. */
  lock(): Promise<StoredPolicies>
}

/** Administrative: only audited transactions have these. Recorded by endings/facts.ts too. */
export interface AdministrativePolicyChanges {
  /** Replaces all. Only after `lock`. */
  set(policies: SetPolicies, at: Instant): Promise<StoredPolicies>
}
