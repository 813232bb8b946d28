import type { AgentConnection } from './agent-connection.ts'

/** The connections of this node, indexed by id, by key and by owner. */
export class Registry {
  readonly byId = new Map<string, AgentConnection>()
  #byKey = new Map<string, Set<AgentConnection>>()
  #byUser = new Map<string, Set<AgentConnection>>()

  add(connection: AgentConnection): void {
    this.byId.set(connection.id, connection)
    this.bindKey(connection.keyId, connection)
    const ofUser = this.#byUser.get(connection.userId)
    if (ofUser) ofUser.add(connection)
    else this.#byUser.set(connection.userId, new Set([connection]))
  }

  remove(connection: AgentConnection): void {
    this.byId.delete(connection.id)
    this.unbindKey(connection.keyId, connection)
    if (connection.renewingTo) this.unbindKey(connection.renewingTo, connection)
    const ofUser = this.#byUser.get(connection.userId)
    ofUser?.delete(connection)
    if (ofUser?.size === 0) this.#byUser.delete(connection.userId)
  }

  /** Indexes a connection by a key, so that the key's revocation closes it. */
  bindKey(keyId: string, connection: AgentConnection): void {
    const held = this.#byKey.get(keyId)
    if (held) held.add(connection)
    else this.#byKey.set(keyId, new Set([connection]))
  }

  unbindKey(keyId: string, connection: AgentConnection): void {
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

  hasKey(keyId: string): boolean {
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

  /** The user's open connections that `to` selects: one by its id, those of a key by its id, or `all`. */
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
}
