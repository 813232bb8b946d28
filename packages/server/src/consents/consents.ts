import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Caller } from '../network.ts'
import type { PageRequest, Slice } from '../paging.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Storage } from '../store.ts'
import type { NamedConsent } from './consent.ts'

export interface Consents {
  /** The active consents, newest first. */
  list(userId: string, page: PageRequest): Promise<Slice<NamedConsent>>
  /**
   * Withdraws a consent, and ends the app's sessions of this person on every node. Also works for an app that needs no
   * consent, if it has such sessions.
   *
   * @throws KeywayError `not_found` if there is neither a consent nor a session
   */
  withdraw(userId: string, appId: string, caller: Caller): Promise<void>
}

export function createConsents({ storage, clock }: { storage: Storage; clock: Clock }): Consents {
  return {
    list: (userId, page) => storage.store.consents.list(userId, page),

    async withdraw(userId, appId, caller) {
      const isWithdrawn = await storage.transaction(async tx => {
        const now = clock.now()
        const consent = await tx.consents.withdraw(userId, appId, now)
        const sessions = await tx.sessions.endAllOfApp(userId, appId, { at: now, caller })
        if (!consent && sessions.length === 0) return false
        await tx.securityEvents.insert(securityEvent('consent_withdrawn', userId, now, caller))
        return true
      })
      if (!isWithdrawn)
        throw new KeywayError('not_found', 'You have not given this app access to your account.')
    },
  }
}
