import { HOUR, MINUTE } from '../clock.ts'
import type { Log } from '../log.ts'
import { networkMatcher } from '../network.ts'

/** So many forwarded requests within one period are no accident, if they are most of what the peer sends. */
export const FORWARDED_BY_A_PROXY = 10
/** How long a peer is named by /readyz after its last such request, and how long its requests are counted together. */
const PERIOD_MS = 10 * MINUTE
/** How often one peer is warned of. */
const WARN_AGAIN_MS = HOUR
/** Peers that are remembered; the one that came first is forgotten first. */
const MAX_PEERS = 200

/**
 * Where a proxy of the operator's own can be: loopback, link-local, private (RFC 1918, RFC 4193) and shared (RFC 6598)
 * addresses. Everybody else can write a forwarding header and is no proxy for it.
 */
export const isPrivateAddress = networkMatcher([
  ...['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', '100.64.0.0/10'],
  ...['::1/128', 'fc00::/7', 'fe80::/10'],
])

export interface ProxyWatch {
  /** Notes a request of a peer that is not trusted, and whether it carried a forwarding header. */
  saw(peer: Peer, isForwarded: boolean): void
  /** Message of /readyz about a proxy that is missing in KEYWAY_TRUSTED_PROXIES, or null. Contains no address. */
  readonly mistake: string | null
}

interface Peer {
  address: string
  isPrivate: boolean
}

interface Counts {
  since: number
  forwarded: number
  plain: number
  forwardedAt: number
}

const MISTAKE =
  'calls come through a proxy that KEYWAY_TRUSTED_PROXIES does not name, so all its clients share one limit; the log names its address'

/**
 * Detects a proxy that is missing in the settings, without trusting client headers. @param now monotonic milliseconds
 */
export function createProxyWatch(log: Log, now: () => number = () => performance.now()): ProxyWatch {
  /** Of private peers. */
  const counts = new Map<string, Counts>()
  /** When each peer was warned of last. */
  const warned = new Map<string, number>()

  return {
    saw(peer, isForwarded) {
      if (isForwarded) warn(peer)
      if (peer.isPrivate && (isForwarded || counts.size > 0)) count(peer.address, isForwarded)
    },
    get mistake() {
      return [...counts.values()].some(isProxy) ? MISTAKE : null
    },
  }

  function warn({ address }: Peer): void {
    const before = warned.get(address)
    if (before !== undefined && now() - before < WARN_AGAIN_MS) return
    remember(warned, address, now())
    log.warn(
      { peer: address },
      'A forwarding header came from a peer that KEYWAY_TRUSTED_PROXIES does not name; if it is your proxy, all its clients share one limit.',
    )
  }

  function count(address: string, isForwarded: boolean): void {
    const seen = counts.get(address)
    if (!seen && !isForwarded) return
    const isFresh = seen && now() - seen.since < PERIOD_MS
    const counted = isFresh ? seen : { since: now(), forwarded: 0, plain: 0, forwardedAt: 0 }
    if (isForwarded) {
      counted.forwarded++
      counted.forwardedAt = now()
    } else counted.plain++
    if (!seen) remember(counts, address, counted)
    else counts.set(address, counted)
  }

  function isProxy({ forwarded, plain, forwardedAt }: Counts): boolean {
    return forwarded >= FORWARDED_BY_A_PROXY && forwarded > plain && now() - forwardedAt < PERIOD_MS
  }
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > MAX_PEERS) map.delete(map.keys().next().value!)
}
