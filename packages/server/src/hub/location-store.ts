/** The nodes on which a user may have connections; a row may outlast the last connection by some seconds. */
export interface LocationStore {
  /**
   * Records that these users have connections on a node, and then returns all nodes of each. Of two nodes that record one
   * user concurrently at least one gets the other.
   */
  enter(nodeId: string, userIds: readonly string[]): Promise<Map<string, string[]>>
  leave(nodeId: string, userIds: readonly string[]): Promise<void>
  nodesOf(userId: string): Promise<string[]>
}
