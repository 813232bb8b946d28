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
const MAX_CHECKED_PAIRS = 200_000

/**
 * The IPv4 /24 or IPv6 /48 that contains a network. Only a use from a new one of these is reported, since providers
 * move customers between addresses within one.
 *
 * @param network as `networkOf` names it
 */
export function alertNetworkOf(network: string): string {
  const address = network.replace(/\/\d+$/, '')
  return siteOf(address) ?? prefixOf(address, 24)
}

/**
 * Notifies owners of keys that are used from a new network. Called with batches of last uses, so that exchanging a key
 * does no extra work; networks that were checked today are skipped in memory. A key's first network is not reported.
 * Each new network causes a security event; at most one mail a day is sent about a key and its successors together.
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
  let checkedPairs = new Set<string>()
  let day = -1

  return async function noteNetworks(uses: readonly KeyedUse[]): Promise<void> {
    forgetPairsDaily()
    const uncheckedUses = uses.filter(use => !checkedPairs.has(pairName(use)))
    if (uncheckedUses.length === 0) return
    await storage.transaction(async tx => {
      const ids = [...new Set(uncheckedUses.map(([id]) => id))]
      const keys = new Map((await tx.apiKeys.findMany(ids)).map(key => [key.id, key]))
      const networkUses = uncheckedUses.flatMap(([id, use]) => {
        const key = keys.get(id)
        const network = alertNetworkOf(use.from.network)
        return key ? [{ lineageId: key.lineageId, network, at: use.at, key, use }] : []
      })
      for (const { key, use } of await tx.keyAlerts.rememberNetworks(networkUses))
        await notifyOwner(tx, key, use)
    })
    for (const use of uncheckedUses) checkedPairs.add(pairName(use))
  }

  /** Forgets the pairs daily, so that the stored last use of a network is renewed daily; also if they are too many. */
  function forgetPairsDaily(): void {
    const today = Math.floor(clock.now() / DAY)
    if (today === day && checkedPairs.size < MAX_CHECKED_PAIRS) return
    day = today
    checkedPairs = new Set()
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

function pairName([keyId, { from }]: KeyedUse): string {
  return `${keyId} ${alertNetworkOf(from.network)}`
}
