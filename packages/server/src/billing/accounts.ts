import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Caller } from '../network.ts'
import type { PageRequest, Slice } from '../paging.ts'
import { securityEvent } from '../security-events/security-events.ts'
import type { Storage } from '../store.ts'
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

export function createAccounts({ storage, clock }: { storage: Storage; clock: Clock }): Accounts {
  const { billing } = storage.store

  return {
    async get(userId) {
      const [balance, subscription, authorizations] = await Promise.all([
        billing.balance(userId),
        billing.subscription(userId),
        billing.authorizations(userId),
      ])
      if (!subscription) throw new KeywayError('not_found', 'There is no such account.')
      return { balance, subscription, authorizations }
    },

    ledger(userId, page) {
      return billing.ledger(userId, page)
    },

    async authorize(userId, appId, caller) {
      const granted = await storage.transaction(async tx => {
        const now = clock.now()
        const authorization = await tx.billing.authorize(userId, appId, now)
        // An authorisation that stood already keeps its own instant: nothing happened that is worth telling.
        if (authorization?.grantedAt === now) {
          await tx.securityEvents.insert(securityEvent('charge_authorization_granted', userId, now, caller))
        }
        return authorization
      })
      if (!granted) throw new KeywayError('not_found', 'No app with this app_id is registered.')
      return granted
    },

    async withdraw(userId, appId, caller) {
      const withdrawn = await storage.transaction(async tx => {
        const now = clock.now()
        const authorization = await tx.billing.withdraw(userId, appId, now)
        if (authorization?.revokedAt === now) {
          await tx.securityEvents.insert(securityEvent('charge_authorization_withdrawn', userId, now, caller))
        }
        return authorization
      })
      if (!withdrawn) throw new KeywayError('not_found', 'This app was never authorised to charge.')
      return withdrawn
    },
  }
}
