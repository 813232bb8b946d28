import type { LiveConnection, PresenceChange } from '../events.ts'

/** The connections of the watched user on one node, as far as they are known. */
interface NodeView {
  /**
   * The version of the node's presence changes that `connections` includes; null if nothing came from the node yet, or if
   * they were read from the database.
   */
  version: number | null
  /** By connection id. */
  connections: Map<string, LiveConnection>
  /** The connections of a full list that have arrived so far, and the number of parts in which they arrived. */
  incoming: LiveConnection[]
  incomingParts: number
  /** Number of `watch` queries that were sent to the node since its last changes or its last whole list arrived. */
  unanswered: number
}

export interface ViewListener {
  /** Called when a connection is new, belongs to another key now, or its key has another name. */
  joined(connection: LiveConnection): void
  left(connectionId: string, reason: string): void
}

/**
 * The connections of one user on all nodes, as each node reports its own. A connection is listed while any node reports
 * it, so one that moves to another node is listed without interruption, whichever node reports first.
 */
export class WatchedUser {
  /** By node id. */
  readonly #nodes = new Map<string, NodeView>()
  /** The connections as last reported to the listener, by connection id. */
  readonly #reported = new Map<string, LiveConnection>()
  readonly #listener: ViewListener

  constructor(listener: ViewListener) {
    this.#listener = listener
  }

  get nodeIds(): string[] {
    return [...this.#nodes.keys()]
  }

  /** Newest first. */
  get connections(): LiveConnection[] {
    return [...this.#reported.values()].sort((a, b) => b.connectedAt - a.connectedAt)
  }

  /** Counts a `watch` query to a node. Returns what it sends as `have`: see `NodeView.version`; null asks for all. */
  countQuery(nodeId: string): number | null {
    const view = this.#viewOf(nodeId)
    view.unanswered++
    return view.version
  }

  /** Number of queries that a node left unanswered; 1 for one that was not queried yet, so that its list is awaited. */
  unansweredBy(nodeId: string): number {
    return this.#nodes.get(nodeId)?.unanswered ?? 1
  }

  /**
   * Applies the changes of a node's connections since version `after` of its feed. False, without
   * applying them, if that is not the version applied last: the node must be queried again.
   */
  change(nodeId: string, after: number, version: number, changes: readonly PresenceChange[]): boolean {
    const view = this.#viewOf(nodeId)
    view.unanswered = 0
    if (view.version !== after) return false
    view.version = version
    for (const change of changes) {
      if ('joined' in change) this.#join(view, change.joined)
      else this.#leave(view, change.left, change.reason)
    }
    return true
  }

  /**
   * Stores one part of a node's full list, and applies the list when its last part has arrived. Until then the `watch`
   * query counts as unanswered, so that watchers wait for the whole list.
   */
  replacePart(
    nodeId: string,
    version: number,
    changes: readonly PresenceChange[],
    part: number,
    parts: number,
  ): void {
    const view = this.#viewOf(nodeId)
    if (part === 0) {
      view.incoming = []
      view.incomingParts = 0
    }
    if (part !== view.incomingParts) return // A part was lost: the next query gets the whole list again.
    view.incomingParts++
    for (const change of changes) if ('joined' in change) view.incoming.push(change.joined)
    if (part < parts - 1) return
    view.unanswered = 0
    const connections = view.incoming
    view.incoming = []
    this.replace(nodeId, connections, version)
  }

  /** Replaces all connections of a node. `version` is null if they were read from the database. */
  replace(nodeId: string, connections: readonly LiveConnection[], version: number | null = null): void {
    const view = this.#viewOf(nodeId)
    view.version = version
    const ids = new Set(connections.map(({ connectionId }) => connectionId))
    for (const id of [...view.connections.keys()]) if (!ids.has(id)) this.#leave(view, id, 'lost')
    for (const connection of connections) this.#join(view, connection)
  }

  drop(nodeId: string, reason = 'node_lost'): void {
    const view = this.#nodes.get(nodeId)
    for (const id of [...(view?.connections.keys() ?? [])]) this.#leave(view!, id, reason)
    this.#nodes.delete(nodeId)
  }

  #join(view: NodeView, connection: LiveConnection): void {
    const { connectionId } = connection
    view.connections.set(connectionId, connection)
    // If another node reports the connection too, one of the two reports is outdated. That is corrected when a node
    // reports that the connection has left it.
    if (this.#reportsOf(connectionId).length === 1) this.#report(connection)
  }

  #leave(view: NodeView, id: string, reason: string): void {
    if (!view.connections.delete(id)) return
    const [otherReport] = this.#reportsOf(id)
    if (otherReport) this.#report(otherReport)
    else {
      this.#reported.delete(id)
      this.#listener.left(id, reason)
    }
  }

  #report(connection: LiveConnection): void {
    const { connectionId, keyId, keyName } = connection
    const previous = this.#reported.get(connectionId)
    if (previous?.keyId === keyId && previous.keyName === keyName) return
    this.#reported.set(connectionId, connection)
    this.#listener.joined(connection)
  }

  /** The connection as reported by each node that has it. */
  #reportsOf(id: string): LiveConnection[] {
    return [...this.#nodes.values()].flatMap(({ connections }) => connections.get(id) ?? [])
  }

  #viewOf(nodeId: string): NodeView {
    const existingView = this.#nodes.get(nodeId)
    if (existingView) return existingView
    const view: NodeView = {
      version: null,
      connections: new Map(),
      incoming: [],
      incomingParts: 0,
      unanswered: 0,
    }
    this.#nodes.set(nodeId, view)
    return view
  }
}
