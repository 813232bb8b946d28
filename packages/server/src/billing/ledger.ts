import type { Instant } from '../clock.ts'
import type { MicroDollars } from './money.ts'

export type LedgerEntryKind = 'trial_credit' | 'charge'

/** One line of the append-only ledger. `cause` is unique: what moved money once never does so again. */
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
