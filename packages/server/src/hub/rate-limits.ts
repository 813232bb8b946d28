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

/** Frames of one connection. At the limit frames are refused; a debt of one more burst closes with 4429. */
export const FRAME_ALLOWANCE: Allowance = { burst: 200, perSecond: 100 }

/** Takes one frame from the allowance of its connection. */
export function frameVerdict(frames: Bucket, now: Instant): 'pass' | 'refuse' | 'close' {
  const level = refill(frames, FRAME_ALLOWANCE, now)
  frames.level = level - 1
  if (level >= 1) return 'pass'
  return level > -FRAME_ALLOWANCE.burst ? 'refuse' : 'close'
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
