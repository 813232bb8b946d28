import type { Instant } from '../clock.ts'
import type { MicroDollars } from './money.ts'

export type LedgerEntryKind = 'trial_credit' | 'charge'

/**
 * One line of the append-only ledger: the database refuses to change or remove it. `cause` is unique: the same cause
 * never moves money twice. `balanceAfter` is never negative; `BillingStore.post` refuses such an entry.
 */
export interface LedgerEntry {
  id: string
  userId: string
  kind: LedgerEntryKind
  /** Signed. */
  amount: MicroDollars
  balanceAfter: MicroDollars
  appId: string | null
  description: string
  cause: string
  createdAt: Instant
}

export interface Subscription {
  userId: string
  plan: 'free'
  status: 'active'
  startedAt: Instant
}
