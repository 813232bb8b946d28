import type { Caller } from '../network.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { ChargeAuthorization, LedgerEntry, Subscription } from './ledger.ts'
import type { MicroDollars } from './money.ts'

/** What a user has and has granted. */
export interface Account {
  balance: MicroDollars
  subscription: Subscription
  authorizations: ChargeAuthorization[]
}

export interface Accounts {
  get(userId: string): Promise<Account>
  ledger(userId: string, page: PageRequest): Promise<Slice<LedgerEntry>>
  /** @throws KeywayError `not_found` when no such app is registered */
  authorize(userId: string, appId: string, caller: Caller): Promise<ChargeAuthorization>
  /** @throws KeywayError `not_found` when it was never granted */
  withdraw(userId: string, appId: string, caller: Caller): Promise<ChargeAuthorization>
}
