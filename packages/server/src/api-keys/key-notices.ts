import { type Clock, DAY, toRfc3339 } from '../clock.ts'
import { keyEvent } from '../endings/webhook-events.ts'
import { newId } from '../ids.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Storage } from '../store.ts'
import type { ApiKey } from './api-key.ts'
import type { RecordedUse } from './api-key-store.ts'
import { mailOwner } from './mail-owner.ts'

/** Days before a key's expiry at which its owner is notified, in descending order. */
export const EXPIRY_NOTICE_DAYS = [14, 7, 1] as const
/** A key that was not used for this long is dormant: its owner is notified of the next use. */
export const DORMANT_AFTER = 90 * DAY
const BATCH = 100

export interface KeyNotices {
  /**
   * Notes each key that expires soon, once over all nodes, and mails its owner, up to the outbox's daily maximum of such
   * mails. Returns how many keys were noted.
   */
  warnOfExpiry(): Promise<number>
  /**
   * Mails the owners of those used keys that were dormant. Must be called before the uses are stored, since storing
   * overwrites `lastUsedAt`.
   * @param uses by key id
   */
  notifyOfReuse(uses: ReadonlyMap<string, RecordedUse>): Promise<void>
}

export function createKeyNotices({
  storage,
  clock,
  outbox,
}: {
  storage: Storage
  clock: Clock
  outbox: Outbox
}): KeyNotices {
  const thresholds = EXPIRY_NOTICE_DAYS.map(days => ({ days, ms: days * DAY }))

  return {
    async warnOfExpiry() {
      let notedCount = 0
      for (;;) {
        const expiringKeys = await storage.store.apiKeys.listExpiring(clock.now(), thresholds, BATCH)
        for (const apiKey of expiringKeys) if (await warn(apiKey)) notedCount++
        if (expiringKeys.length < BATCH) return notedCount
      }
    },

    async notifyOfReuse(uses) {
      const unusedSince = clock.now() - DORMANT_AFTER
      const dormantKeys = await storage.store.apiKeys.listDormant([...uses.keys()], unusedSince)
      for (const apiKey of dormantKeys) await notifyReuse(apiKey, uses.get(apiKey.id)!)
    },
  }

  /**
   * Records the notice and queues the mail in one transaction: a crash leaves both or neither, and of two nodes only
   * one queues the mail. Returns whether this call recorded it.
   */
  function warn(apiKey: ApiKey): Promise<boolean> {
    const mailId = newId(clock.now())
    return storage.transaction(async tx => {
      const now = clock.now()
      const timeLeft = apiKey.expiresAt! - now
      const threshold = thresholds.findLast(({ ms }) => timeLeft <= ms)
      if (!threshold || timeLeft <= 0) return false
      if (!(await tx.apiKeys.noteExpiryNotice(apiKey.id, threshold.days, apiKey.expiresAt!))) return false
      const days = Math.ceil(timeLeft / DAY)
      const expires_at = toRfc3339(apiKey.expiresAt!)
      tx.announce(keyEvent('api_key.expiring', apiKey.id, apiKey.userId, now, { expires_at, days }))
      await mailOwner(tx, outbox, apiKey, {
        id: mailId,
        now,
        about: { kind: 'api_key_expiring', expiresAt: apiKey.expiresAt!, days },
      })
      return true
    })
  }

  /** Records the use and queues the mail in one transaction, unless another node already has. */
  function notifyReuse(apiKey: ApiKey, use: RecordedUse): Promise<void> {
    const mailId = newId(clock.now())
    return storage.transaction(async tx => {
      if (!(await tx.apiKeys.recordReuse(apiKey, use))) return
      const { userId, id: keyId } = apiKey
      await tx.securityEvents.insert(securityEvent('api_key_used_again', userId, use.at, use.from, { keyId }))
      await mailOwner(tx, outbox, apiKey, {
        id: mailId,
        now: clock.now(),
        about: { kind: 'api_key_used_again', at: use.at, network: use.from.network },
      })
    })
  }
}
