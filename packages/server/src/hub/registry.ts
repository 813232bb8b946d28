import type { AgentConnection, HandoverState } from './agent-connection.ts'

/** The connections of this node, indexed by id, by key and by owner, including broken ones (`held`). */
export class Registry {
  readonly byId = new Map<string, AgentConnection>()
  /** Broken connections by owner, in the order in which this node began to hold them. */
  #heldByUser = new Map<string, Set<AgentConnection>>()
  heldCount = 0
  /**
   * Connections that are moving here, until the event by which this node requests them has come back to this node. All
   * nodes receive events in the same order, so the old node still delivers the messages that other nodes published
   * before the request; this node skips these.
   */
  readonly unordered = new Set<AgentConnection>()
  /** Connections that are moving to this node, each with a promise of whether it arrives. */
  readonly arriving = new Map<AgentConnection, Promise<boolean>>()
  #byKey = new Map<string, Set<AgentConnection>>()
  #byUser = new Map<string, Set<AgentConnection>>()

  add(connection: AgentConnection): void {
    this.byId.set(connection.id, connection)
    this.bindKey(connection.keyId, connection)
    const userConnections = this.#byUser.get(connection.userId)
    if (userConnections) userConnections.add(connection)
    else this.#byUser.set(connection.userId, new Set([connection]))
  }

  remove(connection: AgentConnection): void {
    // After a failed move of `connection` to this node, a later move may have registered another object under its id.
    if (this.byId.get(connection.id) === connection) this.byId.delete(connection.id)
    this.unbindKey(connection.keyId, connection)
    if (connection.renewalKeyId) this.unbindKey(connection.renewalKeyId, connection)
    const userConnections = this.#byUser.get(connection.userId)
    userConnections?.delete(connection)
    if (userConnections?.size === 0) this.#byUser.delete(connection.userId)
    const heldConnections = this.#heldByUser.get(connection.userId)
    if (heldConnections?.delete(connection)) this.heldCount--
    if (heldConnections?.size === 0) this.#heldByUser.delete(connection.userId)
  }

  /** Makes a registered connection continue another one, under that one's id. */
  takeOver(connection: AgentConnection, handoverState: HandoverState): void {
    this.remove(connection)
    connection.takeOver(handoverState)
    this.add(connection)
  }

  /** Counts a registered connection as broken, and unbinds the key to which a pending renewal would have moved it. */
  hold(connection: AgentConnection): void {
    const heldConnections = this.#heldByUser.get(connection.userId) ?? new Set()
    this.#heldByUser.set(connection.userId, heldConnections.add(connection))
    this.heldCount++
    const { renewalKeyId, keyId } = connection
    if (renewalKeyId && renewalKeyId !== keyId) this.unbindKey(renewalKeyId, connection)
  }

  heldOf(userId: string): ReadonlySet<AgentConnection> {
    return this.#heldByUser.get(userId) ?? NO_CONNECTIONS
  }

  /**
   * At most `limit` broken connections, taken from their owners in turn, so that those of an owner with many do not all
   * move to other nodes before those of others.
   */
  held(limit: number): AgentConnection[] {
    const connections: AgentConnection[] = []
    let iterators = [...this.#heldByUser.values()].slice(0, limit).map(connections => connections.values())
    while (iterators.length > 0 && connections.length < limit) {
      iterators = iterators.filter(iterator => {
        const next = iterator.next()
        if (!next.done && connections.length < limit) connections.push(next.value)
        return !next.done
      })
    }
    return connections
  }

  /** Number of connections that are not broken. */
  get size(): number {
    return this.byId.size - this.heldCount
  }

  /** Indexes a connection by a key, so that the key's revocation closes it. */
  bindKey(keyId: string, connection: AgentConnection): void {
    const keyConnections = this.#byKey.get(keyId)
    if (keyConnections) keyConnections.add(connection)
    else this.#byKey.set(keyId, new Set([connection]))
  }

  unbindKey(keyId: string, connection: AgentConnection): void {
    const keyConnections = this.#byKey.get(keyId)
    keyConnections?.delete(connection)
    if (keyConnections?.size === 0) this.#byKey.delete(keyId)
  }

  /** Whether the user has connections here, broken ones included. */
  hasUser(userId: string): boolean {
    return this.#byUser.has(userId)
  }

  /** Number of the user's connections that are not broken. */
  countOf(userId: string): number {
    return (this.#byUser.get(userId)?.size ?? 0) - this.heldOf(userId).size
  }

  ofKey(keyId: string): AgentConnection[] {
    return [...(this.#byKey.get(keyId) ?? [])]
  }

  ofUser(userId: string): AgentConnection[] {
    return [...(this.#byUser.get(userId) ?? [])]
  }

  /** The user's connections that are ready and not broken. */
  openOf(userId: string): AgentConnection[] {
    return this.ofUser(userId).filter(({ state }) => state === 'open')
  }

  hasKey(keyId: string): boolean {
    return this.#byKey.has(keyId)
  }

  /** Ids of the keys of all connections and of their pending renewals. */
  keyIds(): string[] {
    return [...this.#byKey.keys()]
  }

  keyIdsOf(userId: string): string[] {
    const keyIds = new Set<string>()
    for (const connection of this.#byUser.get(userId) ?? []) {
      keyIds.add(connection.keyId)
      if (connection.renewalKeyId) keyIds.add(connection.renewalKeyId)
    }
    return [...keyIds]
  }

  /** Whether a connection of the user, in any state, has this id or key, or is about to get this key by a renewal. */
  hasTarget(userId: string, target: string): boolean {
    if (this.byId.get(target)?.userId === userId) return true
    for (const each of this.#byKey.get(target) ?? []) if (each.userId === userId) return true
    return false
  }

  /**
   * The user's open and broken connections that `to` selects (the id of a connection, the id of a key, or `all`),
   * except the one with the id `exceptId`.
   */
  targets(userId: string, to: string, exceptId: string | null): AgentConnection[] {
    const connectionWithId = this.byId.get(to)
    const candidates =
      to === 'all' ? this.ofUser(userId) : connectionWithId ? [connectionWithId] : this.ofKey(to)
    return candidates.filter(
      each =>
        each.userId === userId &&
        (each.state === 'open' || each.state === 'held') &&
        each.id !== exceptId &&
        (to === 'all' || each.id === to || each.keyId === to),
    )
  }
}

const NO_CONNECTIONS: ReadonlySet<AgentConnection> = new Set()
