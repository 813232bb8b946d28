import type { Clock } from '../clock.ts'
import { createKeyedWindows } from '../keyed-windows.ts'
import type { KnownNetworks } from '../known-networks.ts'

/**
 * Limits of the reads of one kind of document by one node, since anybody may name any URL: for one network, for all
 * known networks together (from which an account was used lately), and for all others together. One account can make
 * eight networks known, which cannot use up the limit of the known ones.
 */
const NETWORK_LIMITS = [{ window: 'minute', limit: 10 }] as const
const KNOWN_LIMITS = [{ window: 'minute', limit: 120 }] as const
const UNKNOWN_LIMITS = [{ window: 'minute', limit: 60 }] as const
const MAX_NETWORKS = 10_000

/** Counts a read for the network of the client that causes it; false if the network has too many. */
export type MayRead = (network: string) => boolean

/** Limits what strangers can make a node read from URLs that clients name themselves. */
export function createReadLimits({
  clock,
  knownNetworks,
}: {
  clock: Clock
  knownNetworks: Pick<KnownNetworks, 'isKnown'>
}): MayRead {
  const ofNetworks = createKeyedWindows({ clock, windows: NETWORK_LIMITS, maxNames: MAX_NETWORKS })
  const ofKnown = createKeyedWindows({ clock, windows: KNOWN_LIMITS, maxNames: 10 })
  const ofUnknown = createKeyedWindows({ clock, windows: UNKNOWN_LIMITS, maxNames: 10 })

  return network => {
    const ofAll = knownNetworks.isKnown(network) ? ofKnown : ofUnknown
    return ofNetworks.count(network) === null && ofAll.count('all') === null
  }
}
