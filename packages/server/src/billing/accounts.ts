import type { ChangeLimits } from '../change-limits.ts'
import { type Clock, DAY, type Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Storage } from '../store.ts'
import type { ChargeAuthorization } from './charge-authorization.ts'
import { type ChargeAuthorizations, createChargeAuthorizations } from './charge-authorizations.ts'
import type { LedgerEntry, Subscription } from './ledger.ts'
import type { MicroDollars } from './money.ts'

export interface Account {
  balance: MicroDollars
  subscription: Subscription
  authorizations: ChargeAuthorization[]
}

export interface Accounts extends ChargeAuthorizations {
  /** @throws KeywayError `not_found` for an unknown user */
  get(userId: string): Promise<Account>
  ledger(userId: string, page: PageRequest): Promise<Slice<LedgerEntry>>
  /**
   * The balance at the end of each of the last `BALANCE_DAYS` days (UTC), and for today the current one; oldest first.
   */
  balanceHistory(userId: string): Promise<DayBalance[]>
}

export const BALANCE_DAYS = 30

export interface DayBalance {
  /** The beginning of the day. */
  start: Instant
  balance: MicroDollars
  /** Change of the balance since the end of the day before. */
  change: MicroDollars
}

export function createAccounts(deps: {
  storage: Storage
  clock: Clock
  changeLimits: ChangeLimits
}): Accounts {
  const { billing, users } = deps.storage.store

  return {
    async get(userId) {
      const [balance, subscription, authorizations] = await Promise.all([
        billing.balance(userId),
        billing.subscription(userId),
        billing.authorizations(userId),
      ])
      // Imported accounts have no subscription before their first sign-in.
      return { balance, subscription: subscription ?? (await freePlanOf(userId)), authorizations }
    },

    ledger(userId, page) {
      return billing.ledger(userId, page)
    },

    async balanceHistory(userId) {
      const today = deps.clock.now() - (deps.clock.now() % DAY)
      const dayBoundaries = Array.from(
        { length: BALANCE_DAYS + 1 },
        (_, index) => today + DAY * (index + 1 - BALANCE_DAYS),
      )
      const [balanceBefore = 0, ...balances] = await billing.balancesBefore(userId, dayBoundaries)
      return balances.map((balance, index) => ({
        start: dayBoundaries[index]!,
        balance,
        change: balance - (balances[index - 1] ?? balanceBefore),
      }))
    },

    ...createChargeAuthorizations(deps),
  }

  async function freePlanOf(userId: string): Promise<Subscription> {
    const user = await users.find(userId)
    if (!user) throw new KeywayError('not_found', 'There is no such account.')
    return { userId, plan: 'free', status: 'active', startedAt: user.createdAt }
  }
}
