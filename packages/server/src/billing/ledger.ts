import type { Instant } from '../clock.ts'
import type { MicroDollars } from './money.ts'

export type LedgerEntryKind = 'trial_credit' | 'charge' | 'credit'

/**
 * One line of the append-only ledger: the database refuses to change or delete it. `cause` is unique, so that one cause
 * never changes a balance twice. `balanceAfter` is never negative; `BillingChanges.post` refuses such an entry.
 */
export interface LedgerEntry {
  id: string
  userId: string
  kind: LedgerEntryKind
  /** Positive for credits, negative for charges. */
  amount: MicroDollars
  balanceAfter: MicroDollars
  appId: string | null
  description: string
  cause: string
  createdAt: Instant
  /** The key that the charge named, and the lineage under which it counts (`ApiKey.lineageId`). */
  keyId: string | null
  lineageId: string | null
}

export interface Subscription {
  userId: string
  plan: 'free'
  status: 'active'
  startedAt: Instant
}
