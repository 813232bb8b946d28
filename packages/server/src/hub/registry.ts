import type { Instant } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type Bucket, BYTE_ALLOWANCE, DELIVERY_ALLOWANCE, fullBucket, refill } from './rate-limits.ts'

interface UserEntry {
  connections: Set<AgentConnection>
  deliveries: Bucket
  bytes: Bucket
}

/** The connections of this node, found by id, by key and by owner. */
export class Registry {
  readonly byId = new Map<string, AgentConnection>()
  #byKey = new Map<string, Set<AgentConnection>>()
  #byUser = new Map<string, UserEntry>()

  add(connection: AgentConnection, now: Instant): void {
    this.byId.set(connection.id, connection)
    this.hold(connection.keyId, connection)
    let user = this.#byUser.get(connection.userId)
    if (!user) {
      const deliveries = fullBucket(DELIVERY_ALLOWANCE, now)
      user = { connections: new Set(), deliveries, bytes: fullBucket(BYTE_ALLOWANCE, now) }
      this.#byUser.set(connection.userId, user)
    }
    user.connections.add(connection)
  }

  remove(connection: AgentConnection): void {
    this.byId.delete(connection.id)
    this.letGo(connection.keyId, connection)
    if (connection.renewingTo) this.letGo(connection.renewingTo, connection)
    const user = this.#byUser.get(connection.userId)
    user?.connections.delete(connection)
    if (user?.connections.size === 0) this.#byUser.delete(connection.userId)
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
    return this.#byUser.get(userId)?.connections.size ?? 0
  }

  ofKey(keyId: string): AgentConnection[] {
    return [...(this.#byKey.get(keyId) ?? [])]
  }

  ofUser(userId: string): AgentConnection[] {
    return [...(this.#byUser.get(userId)?.connections ?? [])]
  }

  holdsKey(keyId: string): boolean {
    return this.#byKey.has(keyId)
  }

  keys(): string[] {
    return [...this.#byKey.keys()]
  }

  keysOf(userId: string): string[] {
    const keys = new Set<string>()
    for (const connection of this.#byUser.get(userId)?.connections ?? []) {
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

  /** Whether the user may cause another delivery now; `charge` takes what it cost. */
  mayDeliver(userId: string, now: Instant): boolean {
    const user = this.#byUser.get(userId)
    if (!user) return true
    return refill(user.deliveries, DELIVERY_ALLOWANCE, now) > 0 && refill(user.bytes, BYTE_ALLOWANCE, now) > 0
  }

  charge(userId: string, deliveries: number, bytes: number): void {
    const user = this.#byUser.get(userId)
    if (!user) return
    user.deliveries.level -= deliveries
    user.bytes.level -= deliveries * bytes
  }
}
