import { type Instant, SECOND } from '../clock.ts'

/** So much at once, so much a second. */
export interface Allowance {
  burst: number
  perSecond: number
}

/** A token bucket in two numbers. It may go into debt: what is taken is paid for before the next one passes. */
export interface Bucket {
  level: number
  filledAt: Instant
}

export function fullBucket(allowance: Allowance, now: Instant): Bucket {
  return { level: allowance.burst, filledAt: now }
}

export function refill(bucket: Bucket, allowance: Allowance, now: Instant): number {
  const gained = ((now - bucket.filledAt) / SECOND) * allowance.perSecond
  bucket.level = Math.min(allowance.burst, bucket.level + gained)
  bucket.filledAt = now
  return bucket.level
}

/** Frames of one connection, of every kind. At the limit they are refused; a debt of one more burst closes with 4429. */
export const FRAME_ALLOWANCE: Allowance = { burst: 200, perSecond: 100 }

export type FrameVerdict = 'pass' | 'refuse' | 'close'

/** Takes one frame from the allowance of its connection. */
export function takeFrame(frames: Bucket, now: Instant): FrameVerdict {
  return take(frames, FRAME_ALLOWANCE, 1, now)
}

function take(bucket: Bucket, allowance: Allowance, units: number, now: Instant): FrameVerdict {
  const level = refill(bucket, allowance, now)
  bucket.level = level - units
  if (level >= 1) return 'pass'
  return level > -allowance.burst ? 'refuse' : 'close'
}

/** Owners whose allowances are remembered before those that are full again are forgotten. */
const PRUNE_ABOVE = 1000
/** A connection that was closed for flooding costs its owner so many connects. */
const FLOOD_CONNECTS = 20

/**
 * What all connections of one owner on this node may cost together. They grow with the number of connections that an
 * owner may have. Kept apart from the connections, so that whoever reconnects gains nothing.
 */
export class OwnerLimits {
  readonly #frameAllowance: Allowance
  readonly #connectAllowance: Allowance
  #owners = new Map<string, { frames: Bucket; connects: Bucket }>()
  #pruneAbove = PRUNE_ABOVE

  constructor(maxConnectionsPerUser: number) {
    const connections = Math.max(100, maxConnectionsPerUser)
    this.#frameAllowance = { burst: 10 * connections, perSecond: 2 * connections }
    this.#connectAllowance = { burst: 5 * connections, perSecond: connections / 10 }
  }

  takeFrame(userId: string, units: number, now: Instant): FrameVerdict {
    return take(this.#of(userId, now).frames, this.#frameAllowance, units, now)
  }

  /** Takes one connect; false when the owner has none left. */
  takeConnect(userId: string, now: Instant): boolean {
    const { connects } = this.#of(userId, now)
    if (refill(connects, this.#connectAllowance, now) < 1) return false
    connects.level -= 1
    return true
  }

  chargeFlood(userId: string, now: Instant): void {
    this.#of(userId, now).connects.level -= FLOOD_CONNECTS
  }

  #of(userId: string, now: Instant): { frames: Bucket; connects: Bucket } {
    let owner = this.#owners.get(userId)
    if (!owner) {
      if (this.#owners.size >= this.#pruneAbove) this.#prune(now)
      owner = {
        frames: fullBucket(this.#frameAllowance, now),
        connects: fullBucket(this.#connectAllowance, now),
      }
      this.#owners.set(userId, owner)
    }
    return owner
  }

  /** A full allowance equals none. Doubling the bound keeps the work of all prunings in line with the inserts. */
  #prune(now: Instant): void {
    for (const [userId, { frames, connects }] of this.#owners) {
      const isFull =
        refill(frames, this.#frameAllowance, now) >= this.#frameAllowance.burst &&
        refill(connects, this.#connectAllowance, now) >= this.#connectAllowance.burst
      if (isFull) this.#owners.delete(userId)
    }
    this.#pruneAbove = Math.max(PRUNE_ABOVE, 2 * this.#owners.size)
  }
}

/** Deliveries of one user on one node. */
export const DELIVERY_ALLOWANCE: Allowance = { burst: 5000, perSecond: 1000 }
/** Bytes written for the deliveries of one user on one node. */
export const BYTE_ALLOWANCE: Allowance = { burst: 16 * 1024 * 1024, perSecond: 4 * 1024 * 1024 }

/** Handshakes of one network that brought no good token; good ones are given back and never count. */
export const HANDSHAKE_ALLOWANCE: Allowance = { burst: 1000, perSecond: 10 }
/** Networks that are remembered; the longest unseen is forgotten first. */
const MAX_NETWORKS = 10_000
/** Handshakes of all networks that wait for an answer at the same time. */
export const MAX_PENDING_HANDSHAKES = 5000

export class HandshakeLimits {
  pending = 0
  #networks = new Map<string, Bucket>()

  /** Takes one handshake of a network; false when it has none left. */
  take(network: string, now: Instant): boolean {
    const bucket = this.#networks.get(network) ?? fullBucket(HANDSHAKE_ALLOWANCE, now)
    this.#networks.delete(network)
    this.#networks.set(network, bucket)
    if (this.#networks.size > MAX_NETWORKS) this.#networks.delete(this.#networks.keys().next().value!)
    if (refill(bucket, HANDSHAKE_ALLOWANCE, now) < 1) return false
    bucket.level -= 1
    return true
  }

  giveBack(network: string): void {
    const bucket = this.#networks.get(network)
    if (bucket) bucket.level += 1
  }
}
