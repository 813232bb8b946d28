import { type Clock, DAY, type Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { networkOf } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Storage } from '../store.ts'
import type { ApiKey } from './api-key.ts'
import { mailOwner } from './mail-owner.ts'

/** How many days before its expiry the owner of a key is told, each once. The soonest last. */
export const EXPIRY_NOTICE_DAYS = [14, 7, 1] as const
/** A key that nobody used for this long rests; its next use is worth a word. */
export const RESTS_AFTER = 90 * DAY
const BATCH = 100

/** One use of a key, as a node noted it. */
export interface KeyUse {
  at: Instant
  address: string
}

export interface KeyNotices {
  /** Mails the owners of keys that expire soon. Each warning goes once, whatever node looks. Returns how many went. */
  warnOfExpiry(): Promise<number>
  /**
   * Mails the owners of those of these keys that had rested. Called before the uses are stored, since afterwards
   * nobody could tell.
   */
  tellOfWaking(uses: ReadonlyMap<string, KeyUse>): Promise<void>
}

/** What a key's owner is told unasked: that its expiry is near, and that a key which rested was used again. */
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
      let sent = 0
      for (;;) {
        const due = await storage.store.apiKeys.listExpiring(clock.now(), thresholds, BATCH)
        for (const apiKey of due) if (await warn(apiKey)) sent++
        if (due.length < BATCH) return sent
      }
    },

    async tellOfWaking(uses) {
      const unusedSince = clock.now() - RESTS_AFTER
      const resting = await storage.store.apiKeys.listResting([...uses.keys()], unusedSince)
      for (const apiKey of resting) await wake(apiKey, uses.get(apiKey.id)!)
    },
  }

  /** The note and the mail are one transaction: a crash leaves both or neither, and of two nodes one writes. */
  function warn(apiKey: ApiKey): Promise<boolean> {
    const mailId = newId(clock.now())
    return storage.transaction(async tx => {
      const now = clock.now()
      const left = apiKey.expiresAt! - now
      const reached = thresholds.findLast(({ ms }) => left <= ms)
      if (!reached || left <= 0) return false
      if (!(await tx.apiKeys.noteExpiryNotice(apiKey.id, reached.days, apiKey.expiresAt!))) return false
      const days = Math.ceil(left / DAY)
      await mailOwner(tx, outbox, apiKey, {
        id: mailId,
        now,
        about: { kind: 'api_key_expiring', expiresAt: apiKey.expiresAt!, days },
      })
      return true
    })
  }

  function wake(apiKey: ApiKey, use: KeyUse): Promise<boolean> {
    const mailId = newId(clock.now())
    return storage.transaction(async tx => {
      if (!(await tx.apiKeys.wake(apiKey, use.at))) return false
      await mailOwner(tx, outbox, apiKey, {
        id: mailId,
        now: clock.now(),
        about: { kind: 'api_key_used_again', at: use.at, network: networkOf(use.address) },
      })
      return true
    })
  }
}
