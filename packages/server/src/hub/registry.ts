import type { Instant } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type Bucket, BYTE_ALLOWANCE, DELIVERY_ALLOWANCE, newBucket, refill } from './rate-limits.ts'

/** Owners whose allowance is not full: more than this, and those that are full again are forgotten. */
const PRUNE_ABOVE = 1000

/** What a user may still deliver here. A full one equals none. */
interface Allowances {
  deliveries: Bucket
  bytes: Bucket
}

/** The connections of this node, found by id, by key and by owner. */
export class Registry {
  readonly byId = new Map<string, AgentConnection>()
  #byKey = new Map<string, Set<AgentConnection>>()
  #byUser = new Map<string, Set<AgentConnection>>()
  /** Apart from the connections: a user without any sends by the API, and one that reconnects gains nothing. */
  #allowances = new Map<string, Allowances>()
  #pruneAbove = PRUNE_ABOVE

  add(connection: AgentConnection): void {
    this.byId.set(connection.id, connection)
    this.hold(connection.keyId, connection)
    const ofUser = this.#byUser.get(connection.userId)
    if (ofUser) ofUser.add(connection)
    else this.#byUser.set(connection.userId, new Set([connection]))
  }

  remove(connection: AgentConnection): void {
    this.byId.delete(connection.id)
    this.letGo(connection.keyId, connection)
    if (connection.renewingTo) this.letGo(connection.renewingTo, connection)
    const ofUser = this.#byUser.get(connection.userId)
    ofUser?.delete(connection)
    if (ofUser?.size === 0) this.#byUser.delete(connection.userId)
  }

  /** Files a connection under a key, so that the end of that key finds it. */
  hold(keyId: string, connection: AgentConnection): void {
    const held = this.#byKey.get(keyId)
    if (held) held.add(connection)
    else this.#byKey.set(keyId, new Set([connection]))
  }

  letGo(keyId: string, connection: AgentConnection): void {
    const held = this.#byKey.get(keyId)
    held?.delete(connection)
    if (held?.size === 0) this.#byKey.delete(keyId)
  }

  countOf(userId: string): number {
    return this.#byUser.get(userId)?.size ?? 0
  }

  ofKey(keyId: string): AgentConnection[] {
    return [...(this.#byKey.get(keyId) ?? [])]
  }

  ofUser(userId: string): AgentConnection[] {
    return [...(this.#byUser.get(userId) ?? [])]
  }

  holdsKey(keyId: string): boolean {
    return this.#byKey.has(keyId)
  }

  keys(): string[] {
    return [...this.#byKey.keys()]
  }

  keysOf(userId: string): string[] {
    const keys = new Set<string>()
    for (const connection of this.#byUser.get(userId) ?? []) {
      keys.add(connection.keyId)
      if (connection.renewingTo) keys.add(connection.renewingTo)
    }
    return [...keys]
  }

  /** Open connections of the user that `to` names: a connection, a key's, or all. */
  targets(userId: string, to: string, exceptId: string | null): AgentConnection[] {
    const one = this.byId.get(to)
    const found = to === 'all' ? this.ofUser(userId) : one ? [one] : this.ofKey(to)
    return found.filter(
      each =>
        each.userId === userId &&
        each.state === 'open' &&
        each.id !== exceptId &&
        (to === 'all' || each.id === to || each.keyId === to),
    )
  }

  /** Whether the user may cause another delivery now, connected here or not; `charge` takes what it cost. */
  mayDeliver(userId: string, now: Instant): boolean {
    const allowances = this.#allowances.get(userId)
    if (!allowances) return true
    return (
      refill(allowances.deliveries, DELIVERY_ALLOWANCE, now) > 0 &&
      refill(allowances.bytes, BYTE_ALLOWANCE, now) > 0
    )
  }

  charge(userId: string, deliveries: number, bytes: number, now: Instant): void {
    let allowances = this.#allowances.get(userId)
    if (!allowances) {
      this.#prune(now)
      allowances = {
        deliveries: newBucket(DELIVERY_ALLOWANCE, now),
        bytes: newBucket(BYTE_ALLOWANCE, now),
      }
      this.#allowances.set(userId, allowances)
    }
    allowances.deliveries.level -= deliveries
    allowances.bytes.level -= deliveries * bytes
  }

  /** Each is full again after seconds, so that only owners who sent just now are left. */
  #prune(now: Instant): void {
    if (this.#allowances.size < this.#pruneAbove) return
    for (const [userId, { deliveries, bytes }] of this.#allowances) {
      const isFull =
        refill(deliveries, DELIVERY_ALLOWANCE, now) === DELIVERY_ALLOWANCE.burst &&
        refill(bytes, BYTE_ALLOWANCE, now) === BYTE_ALLOWANCE.burst
      if (isFull) this.#allowances.delete(userId)
    }
    this.#pruneAbove = Math.max(PRUNE_ABOVE, 2 * this.#allowances.size)
  }
}
