import type { Clock } from '../clock.ts'
import { createKeyedWindows } from '../keyed-windows.ts'
import type { KnownNetworks } from '../known-networks.ts'

/**
 * Anybody may name any URL as a client id or `jwks_uri`, so a node limits how many such documents it reads: for each
 * network, for all known networks together (from which an account was used lately), and for all other networks
 * together. One account can make eight networks known, which together cannot use up the limit of the known networks.
 */
const NETWORK_LIMITS = [{ window: 'minute', limit: 10 }] as const
const KNOWN_LIMITS = [{ window: 'minute', limit: 120 }] as const
const UNKNOWN_LIMITS = [{ window: 'minute', limit: 60 }] as const
const MAX_NETWORKS = 10_000

/**
 * Counts a read for the network of the client that causes it; false if a limit is reached, so that it must not be made.
 */
export type MayRead = (network: string) => boolean

export function createReadLimits({
  clock,
  knownNetworks,
}: {
  clock: Clock
  knownNetworks: Pick<KnownNetworks, 'isKnown'>
}): MayRead {
  const readsByNetwork = createKeyedWindows({ clock, windows: NETWORK_LIMITS, maxNames: MAX_NETWORKS })
  const readsOfKnownNetworks = createKeyedWindows({ clock, windows: KNOWN_LIMITS, maxNames: 10 })
  const readsOfUnknownNetworks = createKeyedWindows({ clock, windows: UNKNOWN_LIMITS, maxNames: 10 })

  return network => {
    const sharedReads = knownNetworks.isKnown(network) ? readsOfKnownNetworks : readsOfUnknownNetworks
    return readsByNetwork.count(network) === null && sharedReads.count('all') === null
  }
}
