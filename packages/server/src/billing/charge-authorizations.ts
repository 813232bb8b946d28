import type { ChangeLimits } from '../change-limits.ts'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Caller } from '../network.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Storage, Transaction } from '../store.ts'
import type { ChargeAuthorization } from './charge-authorization.ts'

export interface ChargeAuthorizations {
  /** @throws KeywayError `not_found` if no such app is registered, `rate_limited` */
  authorize(userId: string, appId: string, caller: Caller): Promise<ChargeAuthorization>
  /** @throws KeywayError `not_found` if it was never granted */
  withdraw(userId: string, appId: string, caller: Caller): Promise<ChargeAuthorization>
}

export function createChargeAuthorizations({
  storage,
  clock,
  changeLimits,
}: {
  storage: Storage
  clock: Clock
  changeLimits: ChangeLimits
}): ChargeAuthorizations {
  return {
    async authorize(userId, appId, caller) {
      const existingAuthorization = (await storage.store.billing.authorizations(userId)).find(
        each => each.appId === appId,
      )
      if (existingAuthorization?.revokedAt === null) return existingAuthorization
      // Each withdrawal follows a grant, so limiting grants limits both, and withdrawals are never refused.
      changeLimits.count(`person:${userId}`)
      const grantedAuthorization = await storage.transaction(async tx => {
        const now = clock.now()
        const authorization = await tx.billing.authorize(userId, appId, now)
        // An authorisation that was active already keeps its `grantedAt`: nothing changed, so no security event.
        if (authorization?.grantedAt === now) {
          await tx.securityEvents.insert(securityEvent('charge_authorization_granted', userId, now, caller))
        }
        return authorization
      })
      if (!grantedAuthorization) throw new KeywayError('not_found', 'No app with this app_id is registered.')
      return grantedAuthorization
    },

    async withdraw(userId, appId, caller) {
      const withdrawnAuthorization = await storage.transaction(async tx => {
        const now = clock.now()
        const authorization = await tx.billing.withdraw(userId, appId, now)
        if (authorization?.revokedAt === now) {
          await tx.securityEvents.insert(securityEvent('charge_authorization_withdrawn', userId, now, caller))
        }
        return authorization
      })
      if (!withdrawnAuthorization)
        throw new KeywayError('not_found', 'This app was never authorised to charge.')
      return withdrawnAuthorization
    },
  }
}

/** Whether the user and the app's authorisation are active, as the transaction sees it. */
export async function mayCharge(tx: Transaction, userId: string, appId: string): Promise<boolean> {
  const user = await tx.users.find(userId)
  if (user?.status !== 'active') return false
  const authorizations = await tx.billing.authorizations(userId)
  return authorizations.some(
    authorization => authorization.appId === appId && authorization.revokedAt === null,
  )
}
