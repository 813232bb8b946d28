import type { Clock } from '../clock.ts'
import { createKeyedWindows } from '../keyed-windows.ts'
import type { KnownNetworks } from '../known-networks.ts'

/**
 * Reads of one kind of document that one node makes at most, since anybody may name any URL: for one network, for all networks
 * from which an account was used lately, and for all others. One account makes eight networks known, which cannot use up the
 * limit of those.
 */
const NETWORK_LIMITS = [{ window: 'minute', limit: 10 }] as const
const KNOWN_LIMITS = [{ window: 'minute', limit: 120 }] as const
const UNKNOWN_LIMITS = [{ window: 'minute', limit: 60 }] as const
const MAX_NETWORKS = 10_000

/** Counts a read for the network of a caller; false, and nothing is to be read, if there were too many. */
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
    const reads = knownNetworks.isKnown(network) ? ofKnown : ofUnknown
    return ofNetworks.count(network) === null && reads.count('all') === null
  }
}
