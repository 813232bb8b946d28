import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { ChargeAuthorization } from './charge-authorizations.ts'
import type { LedgerEntry, Subscription } from './ledger.ts'
import type { MicroDollars } from './money.ts'

export interface BillingStore {
  /** Zero for a user without entries. */
  balance(userId: string): Promise<MicroDollars>
  /**
   * Adds `entry.amount` to the balance and appends the entry with the balance that results, in one
   * transaction. Null, and nothing written, when the balance would fall below zero or the cause was used. Its
   * instant is moved on where needed, so that a user's entries stand in the order in which they moved the balance.
   */
  post(entry: Omit<LedgerEntry, 'balanceAfter'>): Promise<LedgerEntry | null>
  findEntry(id: string): Promise<LedgerEntry | null>
  /** What an Idempotency-Key or an event caused, if it did. */
  findByCause(cause: string): Promise<LedgerEntry | null>
  ledger(userId: string, page: PageRequest): Promise<Slice<LedgerEntry>>
  /** Whether an address with this keyed hash had its trial credit; remembers it. True the first time only. */
  claimTrialCredit(addressHash: string, userId: string, at: Instant): Promise<boolean>
  /** False when the user has one. */
  insertSubscription(subscription: Subscription): Promise<boolean>
  subscription(userId: string): Promise<Subscription | null>
  /** Newest grant first; withdrawn ones stay listed. */
  authorizations(userId: string): Promise<ChargeAuthorization[]>
  /** Null when no such app is registered. Granting anew sets `grantedAt` only where it was withdrawn. */
  authorize(userId: string, appId: string, at: Instant): Promise<ChargeAuthorization | null>
  /** Null when it was never granted; repeating it changes nothing. */
  withdraw(userId: string, appId: string, at: Instant): Promise<ChargeAuthorization | null>
}
