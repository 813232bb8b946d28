import type { Instant } from '../clock.ts'
import { type Allowance, type Bucket, fullBucket, refill } from './token-bucket.ts'

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
