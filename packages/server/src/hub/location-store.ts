/**
 * The nodes on which a user may have connections. A row outlasts the last connection by some seconds; if the node has
 * crashed or could not delete it, until the node is pruned.
 */
export interface LocationStore {
  /**
   * Records that these users have connections on a node, and then returns all nodes of each. If two nodes record the
   * same user concurrently, at least one of them gets the other node.
   */
  enter(nodeId: string, userIds: readonly string[]): Promise<Map<string, string[]>>
  leave(nodeId: string, userIds: readonly string[]): Promise<void>
  nodesOf(userId: string): Promise<string[]>
}
