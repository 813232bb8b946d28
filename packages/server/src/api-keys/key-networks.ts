import { type Clock, DAY, type Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { prefixOf, siteOf } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Storage, Transaction } from '../store.ts'
import type { OwnedApiKey } from './api-key.ts'
import type { RecordedUse } from './api-key-store.ts'
import type { KeyedUse } from './last-used.ts'
import { mailOwner } from './mail-owner.ts'

/** Maximum number of pairs of key and network that are remembered as checked today. */
const MAX_CHECKED = 200_000

/**
 * The unit in which a network counts as new: providers move customers between addresses of one IPv4 /24 or IPv6 /48.
 *
 * @param network as `networkOf` names it
 */
export function alertNetworkOf(network: string): string {
  const address = network.replace(/\/\d+$/, '')
  return siteOf(address) ?? prefixOf(address, 24)
}

/**
 * Notifies owners of keys that are used from a network for the first time. Called with the batches of last uses, so an
 * exchange pays nothing; networks that were seen today are skipped in memory. The first network of a key is not new.
 * Each new network is a security event; for one key, at most one mail a day is sent.
 */
export function createKeyNetworks({
  storage,
  clock,
  outbox,
}: {
  storage: Storage
  clock: Clock
  outbox: Outbox
}) {
  /** Pairs of key and network that were checked today. */
  let checked = new Set<string>()
  let day = -1

  return async function noteNetworks(uses: readonly KeyedUse[]): Promise<void> {
    startDay()
    const unchecked = uses.filter(use => !checked.has(checkedName(use)))
    if (unchecked.length === 0) return
    await storage.transaction(async tx => {
      const ids = [...new Set(unchecked.map(([id]) => id))]
      const keys = new Map((await tx.apiKeys.findMany(ids)).map(key => [key.id, key]))
      const networkUses = unchecked.flatMap(([id, use]) => {
        const key = keys.get(id)
        const network = alertNetworkOf(use.from.network)
        return key ? [{ lineageId: key.lineageId, network, at: use.at, key, use }] : []
      })
      for (const { key, use } of await tx.keyAlerts.rememberNetworks(networkUses))
        await notifyOwner(tx, key, use)
    })
    for (const use of unchecked) checked.add(checkedName(use))
  }

  /** Cleared each day, so that the stored last use of a network is at most a day too old. */
  function startDay(): void {
    const today = Math.floor(clock.now() / DAY)
    if (today === day && checked.size < MAX_CHECKED) return
    day = today
    checked = new Set()
  }

  async function notifyOwner(tx: Transaction, key: OwnedApiKey, { at, from }: RecordedUse): Promise<void> {
    await tx.securityEvents.insert(
      securityEvent('api_key_new_network', key.userId, at, from, { keyId: key.id }),
    )
    if (!(await tx.keyAlerts.claim(key.lineageId, 'new_network', dayOf(at), at))) return
    const about = { kind: 'api_key_new_network' as const, at, network: from.network }
    await mailOwner(tx, outbox, key, { id: newId(at), now: clock.now(), about })
  }
}

function dayOf(at: Instant): number {
  return Math.floor(at / DAY)
}

function checkedName([keyId, { from }]: KeyedUse): string {
  return `${keyId} ${alertNetworkOf(from.network)}`
}
