import type { Instant } from '../clock.ts'
import type { AuthorizationState } from '../endings/fact.ts'
import type { SpendPeriod } from '../limits/limit.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { ChargeAuthorization } from './charge-authorization.ts'
import type { LedgerEntry, Subscription } from './ledger.ts'
import type { MicroDollars } from './money.ts'
import type { SpendCaps, SpentSums } from './spend.ts'

export interface PostedEntry {
  entry: LedgerEntry
  /** What the key and its predecessors by rotation have spent, this entry included; null for an entry without a key. */
  spent: SpentSums | null
}

export interface BillingStore {
  /** Zero for a user without entries. */
  balance(userId: string): Promise<MicroDollars>
  findEntry(id: string): Promise<LedgerEntry | null>
  /** The entry with this cause, such as the hash of an Idempotency-Key, if any. */
  findByCause(cause: string): Promise<LedgerEntry | null>
  ledger(userId: string, page: PageRequest): Promise<Slice<LedgerEntry>>
  /**
   * The balance just before each of these instants; zero before the first entry. Each costs one look-up of an index.
   */
  balancesBefore(userId: string, instants: readonly Instant[]): Promise<MicroDollars[]>
  /** False if the user has a subscription already. */
  insertSubscription(subscription: Subscription): Promise<boolean>
  subscription(userId: string): Promise<Subscription | null>
  /** What was charged to each lineage (a key and its successors by rotation); lineages without a charge are absent. */
  spentOf(lineageIds: readonly string[]): Promise<Map<string, SpentSums>>
  /** Newest grant first; withdrawn ones stay listed. */
  authorizations(userId: string): Promise<ChargeAuthorization[]>
}

/**
 * Changes of balances and authorisations. Their transaction also records what the journal and webhooks learn of them
 * (endings/facts.ts).
 */
export interface BillingChanges {
  /**
   * Adds `entry.amount` to the balance and appends the entry with the resulting balance, atomically. Returns null and
   * writes nothing if the balance would be negative or an entry has the same cause. `createdAt` is made later where
   * needed, so that a user's entries sort in the order in which they changed the balance. A debit is added to what
   * the lineage of the entry's key has spent, even beyond its spend limits.
   */
  post(entry: Omit<LedgerEntry, 'balanceAfter'>): Promise<LedgerEntry | null>
  /**
   * Like `post`, but also returns what the key's lineage has spent. If that would exceed a limit in `caps`, writes
   * nothing and returns the period of that limit.
   */
  charge(entry: Omit<LedgerEntry, 'balanceAfter'>, caps: SpendCaps): Promise<PostedEntry | SpendPeriod | null>
  /** Records that the address with this keyed hash got its trial credit. True the first time only. */
  claimTrialCredit(addressHash: string, userId: string, at: Instant): Promise<boolean>
  /** Returns null if no such app is registered. Granting an active authorisation again does not change `grantedAt`. */
  authorize(userId: string, appId: string, at: Instant): Promise<ChargeAuthorization | null>
  /** Null if the authorisation was never granted; withdrawing it again changes nothing. */
  withdraw(userId: string, appId: string, at: Instant): Promise<ChargeAuthorization | null>
  /**
   * Withdraws at most `limit` active authorisations of an app; returns them. Scans the table, so for operators only.
   */
  withdrawSomeOfApp(appId: string, at: Instant, limit: number): Promise<AuthorizationState[]>
}
