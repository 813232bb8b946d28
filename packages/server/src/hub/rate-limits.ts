import { type Instant, SECOND } from '../clock.ts'

/** Parameters of a token bucket: its capacity and its refill rate. */
export interface Allowance {
  burst: number
  perSecond: number
}

/** State of a token bucket. The level may become negative: a debt, to be refilled before the next unit passes. */
export interface Bucket {
  level: number
  filledAt: Instant
}

export function newBucket(allowance: Allowance, now: Instant): Bucket {
  return { level: allowance.burst, filledAt: now }
}

/** Adds the units gained since the last refill; returns the level. */
export function refill(bucket: Bucket, allowance: Allowance, now: Instant): number {
  const gainedUnits = ((now - bucket.filledAt) / SECOND) * allowance.perSecond
  bucket.level = Math.min(allowance.burst, bucket.level + gainedUnits)
  bucket.filledAt = now
  return bucket.level
}

/**
 * Limit of frames of one connection, of all types. Further frames are refused, but are also taken from the bucket; once
 * its debt is as large as `burst`, the next frame closes the connection with 4429.
 */
export const FRAME_ALLOWANCE: Allowance = { burst: 200, perSecond: 100 }

/**
 * Limit of renewals of one connection: since a token lives for minutes, more renewals are a client's mistake, and each
 * costs an exchange.
 */
export const RENEWAL_ALLOWANCE: Allowance = { burst: 10, perSecond: 1 / 6 }

/** Counts a renewal; false if the connection has renewed too often, so that this one must be refused. */
export function takeRenewal(renewals: Bucket, now: Instant): boolean {
  if (refill(renewals, RENEWAL_ALLOWANCE, now) < 1) return false
  renewals.level--
  return true
}

/** Limit of `watch` frames of one connection: each is answered with a list of all connections. */
export const WATCH_ALLOWANCE: Allowance = { burst: 5, perSecond: 0.1 }

/** Counts a `watch` frame; false if the connection has sent too many, so that this one must be refused. */
export function takeWatch(watches: Bucket, now: Instant): boolean {
  if (refill(watches, WATCH_ALLOWANCE, now) < 1) return false
  watches.level--
  return true
}

export type RateDecision = 'pass' | 'refuse' | 'close'

export function takeFrame(frames: Bucket, now: Instant): RateDecision {
  return take(frames, FRAME_ALLOWANCE, 1, now)
}

/** Takes units from a bucket, which may go into debt. */
function take(bucket: Bucket, allowance: Allowance, units: number, now: Instant): RateDecision {
  const level = refill(bucket, allowance, now)
  bucket.level = level - units
  if (level >= 1) return 'pass'
  return level > -allowance.burst ? 'refuse' : 'close'
}

const MIB = 1024 * 1024
/**
 * Maximum deliveries of one user on one node in a second: a tenth of what one core can write (docs/performance.md). A
 * burst may use two seconds' worth, which delays others by a fifth of a second.
 */
export const DELIVERIES_PER_SECOND = 5000
/** Maximum MiB written for these deliveries in a second. */
export const DELIVERY_MIB_PER_SECOND = 16
const BURST_SECONDS = 2
/**
 * Number of owners at which those who used nothing lately (their buckets are full) are evicted. The next eviction is
 * due at twice the number of owners that remained, but not below this number.
 */
const PRUNE_ABOVE = 1000
/** Number of connects charged to the owner of a connection that was closed for flooding. */
const FLOOD_CONNECTS = 20

type OwnerResource = 'frames' | 'connects' | 'deliveries' | 'bytes'

/**
 * Limits of one owner on this node, over all connections and the API. Stored separately from the connections, so that
 * reconnecting does not reset them. Limits of frames and connects grow with the maximum number of connections, if that
 * is above 100.
 */
export class OwnerLimits {
  readonly #allowances: Record<OwnerResource, Allowance>
  /** By user id. */
  #owners = new Map<string, Record<OwnerResource, Bucket>>()
  #pruneAbove = PRUNE_ABOVE

  constructor(
    maxConnectionsPerUser: number,
    deliveriesPerSecond: number = DELIVERIES_PER_SECOND,
    mibPerSecond: number = DELIVERY_MIB_PER_SECOND,
  ) {
    const connections = Math.max(100, maxConnectionsPerUser)
    this.#allowances = {
      frames: { burst: 10 * connections, perSecond: 2 * connections },
      connects: { burst: 5 * connections, perSecond: connections / 10 },
      deliveries: { burst: BURST_SECONDS * deliveriesPerSecond, perSecond: deliveriesPerSecond },
      bytes: { burst: BURST_SECONDS * mibPerSecond * MIB, perSecond: mibPerSecond * MIB },
    }
  }

  takeFrame(userId: string, units: number, now: Instant): RateDecision {
    return take(this.#of(userId, now).frames, this.#allowances.frames, units, now)
  }

  /** Counts a new connection of the owner; false, without counting it, if the owner has connected too often. */
  takeConnect(userId: string, now: Instant): boolean {
    const { connects } = this.#of(userId, now)
    if (refill(connects, this.#allowances.connects, now) < 1) return false
    connects.level -= 1
    return true
  }

  chargeFlood(userId: string, now: Instant): void {
    this.#of(userId, now).connects.level -= FLOOD_CONNECTS
  }

  /** Whether the owner may send another message now; its cost is charged once it is written. */
  mayDeliver(userId: string, now: Instant): boolean {
    const { deliveries, bytes } = this.#of(userId, now)
    const allowances = this.#allowances
    return refill(deliveries, allowances.deliveries, now) > 0 && refill(bytes, allowances.bytes, now) > 0
  }

  chargeDeliveries(userId: string, count: number, frameBytes: number, now: Instant): void {
    const { deliveries, bytes } = this.#of(userId, now)
    deliveries.level -= count
    bytes.level -= count * frameBytes
  }

  #of(userId: string, now: Instant): Record<OwnerResource, Bucket> {
    const existing = this.#owners.get(userId)
    if (existing) return existing
    if (this.#owners.size >= this.#pruneAbove) this.#prune(now)
    const { frames, connects, deliveries, bytes } = this.#allowances
    const buckets = {
      frames: newBucket(frames, now),
      connects: newBucket(connects, now),
      deliveries: newBucket(deliveries, now),
      bytes: newBucket(bytes, now),
    }
    this.#owners.set(userId, buckets)
    return buckets
  }

  /**
   * Evicts owners whose buckets are full, since a new owner gets full buckets anyway. Runs again only when the
   * number of owners has doubled, so that its cost per insert is amortized constant.
   */
  #prune(now: Instant): void {
    const resources = Object.keys(this.#allowances) as OwnerResource[]
    for (const [userId, buckets] of this.#owners) {
      const isFull = resources.every(resource => {
        const allowance = this.#allowances[resource]
        return refill(buckets[resource], allowance, now) >= allowance.burst
      })
      if (isFull) this.#owners.delete(userId)
    }
    this.#pruneAbove = Math.max(PRUNE_ABOVE, 2 * this.#owners.size)
  }
}

/**
 * Limit of failed handshakes of one network: each handshake is charged, and refunded if its token is valid or cannot be
 * verified at the moment.
 */
export const HANDSHAKE_ALLOWANCE: Allowance = { burst: 1000, perSecond: 10 }
/** Maximum number of networks with a bucket; the least recently used is evicted. */
const MAX_NETWORKS = 10_000
/** Maximum number of handshakes whose tokens are being verified at the same time, over all networks. */
export const MAX_PENDING_HANDSHAKES = 5000

export class HandshakeLimits {
  pending = 0
  /** The buckets of client networks, each with the handshakes that remain. */
  #networks = new Map<string, Bucket>()

  /** Takes one handshake from the bucket of the network; false if none is left. */
  take(network: string, now: Instant): boolean {
    const bucket = this.#networks.get(network) ?? newBucket(HANDSHAKE_ALLOWANCE, now)
    this.#networks.delete(network)
    this.#networks.set(network, bucket)
    if (this.#networks.size > MAX_NETWORKS) this.#networks.delete(this.#networks.keys().next().value!)
    if (refill(bucket, HANDSHAKE_ALLOWANCE, now) < 1) return false
    bucket.level -= 1
    return true
  }

  refund(network: string): void {
    const bucket = this.#networks.get(network)
    if (bucket) bucket.level += 1
  }
}
