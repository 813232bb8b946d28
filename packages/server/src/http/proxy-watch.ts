import { HOUR, MINUTE } from '../clock.ts'
import type { Log } from '../log.ts'
import { networkMatcher } from '../network.ts'

/**
 * A peer counts as a proxy if in one period it sent at least this number of requests with a forwarding header, and
 * fewer without one than with one.
 */
export const MIN_FORWARDED_REQUESTS = 10
/**
 * How long requests of a peer are counted together, and how long after its last forwarded request /readyz reports a
 * proxy.
 */
const PERIOD_MS = 10 * MINUTE
/** Minimum interval between two warnings about one peer. */
const WARN_AGAIN_MS = HOUR
/** Maximum number of peers in memory; the oldest is evicted first. */
const MAX_PEERS = 200

/**
 * Addresses that a proxy of the operator may have: loopback, link-local, private (RFC 1918, RFC 4193) and shared
 * (RFC 6598). A forwarding header from any other address may be forged by a client.
 */
export const isPrivateAddress = networkMatcher([
  ...['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', '100.64.0.0/10'],
  ...['::1/128', 'fc00::/7', 'fe80::/10'],
])

export interface ProxyWatch {
  /**
   * Warns about a forwarding header from a peer that is not trusted, and counts the requests of peers in private
   * networks.
   *
   * @param isForwarded whether the request had a forwarding header
   */
  count(peer: Peer, isForwarded: boolean): void
  /**
   * Whether a peer in a private network counts as a proxy (MIN_FORWARDED_REQUESTS) and forwarded a request in the last
   * PERIOD_MS, so that its connections carry requests of many clients.
   */
  forwards(address: string): boolean
  /** A message for /readyz, without addresses, about a proxy that KEYWAY_TRUSTED_PROXIES does not list; or null. */
  readonly mistake: string | null
}

interface Peer {
  address: string
  isPrivate: boolean
}

/** The requests of one peer in a period, with and without a forwarding header. */
interface RequestCounts {
  startedAt: number
  forwarded: number
  plain: number
  lastForwardedAt: number
}

const MISTAKE_MESSAGE =
  'calls come through a proxy that KEYWAY_TRUSTED_PROXIES does not list, so all its clients share one limit; the log has its address'

/**
 * Detects proxies that KEYWAY_TRUSTED_PROXIES does not list. Only whether a request has a forwarding header counts; the
 * addresses in it are not used, since a client may have forged them.
 *
 * @param now monotonic milliseconds
 */
export function createProxyWatch(log: Log, now: () => number = () => performance.now()): ProxyWatch {
  /** Of peers in private networks, by address. */
  const countsByPeer = new Map<string, RequestCounts>()
  /** By address. */
  const lastWarningAt = new Map<string, number>()

  return {
    count(peer, isForwarded) {
      if (isForwarded) warn(peer)
      if (peer.isPrivate && (isForwarded || countsByPeer.size > 0)) addRequest(peer.address, isForwarded)
    },
    forwards(address) {
      const counts = countsByPeer.get(address)
      return counts !== undefined && isProxy(counts)
    },
    get mistake() {
      return [...countsByPeer.values()].some(isProxy) ? MISTAKE_MESSAGE : null
    },
  }

  function warn({ address }: Peer): void {
    const lastWarnedAt = lastWarningAt.get(address)
    if (lastWarnedAt !== undefined && now() - lastWarnedAt < WARN_AGAIN_MS) return
    putBounded(lastWarningAt, address, now())
    log.warn(
      { peer: address },
      'A forwarding header came from a peer that KEYWAY_TRUSTED_PROXIES does not list; if it is your proxy, all its clients share one limit.',
    )
  }

  function addRequest(address: string, isForwarded: boolean): void {
    const existingCounts = countsByPeer.get(address)
    if (!existingCounts && !isForwarded) return
    const isCurrent = existingCounts && now() - existingCounts.startedAt < PERIOD_MS
    const counts = isCurrent
      ? existingCounts
      : { startedAt: now(), forwarded: 0, plain: 0, lastForwardedAt: 0 }
    if (isForwarded) {
      counts.forwarded++
      counts.lastForwardedAt = now()
    } else counts.plain++
    if (!existingCounts) putBounded(countsByPeer, address, counts)
    else countsByPeer.set(address, counts)
  }

  function isProxy({ forwarded, plain, lastForwardedAt }: RequestCounts): boolean {
    return forwarded >= MIN_FORWARDED_REQUESTS && forwarded > plain && now() - lastForwardedAt < PERIOD_MS
  }
}

function putBounded<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > MAX_PEERS) map.delete(map.keys().next().value!)
}
