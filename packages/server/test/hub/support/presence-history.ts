import assert from 'node:assert/strict'
import { mock } from 'node:test'
import type { ServerFrame } from '@keyway/sdk/protocol'
import { Random } from '../../support/random.ts'
import { PresenceWorld } from './presence-world.ts'

/**
 * How late a watcher may be, in milliseconds: until a dead node is stale and the next heartbeat notices that, or until
 * two `watch` queries to a node that is cut off have failed and the database is read (docs/hub-protocol.md, Presence).
 */
const MAX_WATCHER_DELAY_MS = 15_000
const ROUNDS = 4
const MAX_ACTIONS = 60

/**
 * Runs random operations and faults on two or three nodes from a seed, and checks the frames of each watcher.
 *
 * @throws AssertionError with the seed
 */
export async function checkPresence(seed: number): Promise<{ frames: number; left: Set<string> }> {
  const random = new Random(seed)
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const world = new PresenceWorld(random, mock.timers)
    for (let n = random.between(2, 3); n > 0; n--) world.startNode()
    const summary = { frames: 0, left: new Set<string>() }
    for (let round = 0; round < ROUNDS; round++) {
      for (let n = random.between(5, MAX_ACTIONS); n > 0; n--) {
        performRandomAction(world, random)
        if (random.next() < 0.7) await world.run(random.pick([10, 30, 100, 700]))
      }
      world.loss = 0
      world.cut.clear()
      await world.run(MAX_WATCHER_DELAY_MS)
      for (const { frames } of world.watchers) {
        checkFrames(frames, world.truth, `seed ${seed}, round ${round}`)
        summary.frames += frames.length
        for (const frame of frames) if (frame.type === 'left') summary.left.add(frame.reason)
      }
    }
    return summary
  } finally {
    mock.timers.reset()
  }
}

function performRandomAction(world: PresenceWorld, random: Random): void {
  const nodes = [...world.nodes.keys()]
  const ids = world.truth
  const [node, id] = [random.pick(nodes), ids.length > 0 ? random.pick(ids) : null]
  const dice = random.next()
  if (dice < 0.35 || !id) world.connect(node)
  else if (dice < 0.5) world.disconnect(id)
  else if (dice < 0.6) world.move(id, node)
  else if (dice < 0.78) world.watch(id)
  else if (dice < 0.81) world.unwatch(id)
  else if (dice < 0.86) world.loss = random.pick([0, 0.1, 0.5])
  else if (dice < 0.91) world.cut.add(`${random.pick(nodes)} ${random.pick(nodes)}`)
  else if (dice < 0.96) world.cut.clear()
  else if (dice < 0.98 && nodes.length > 1) world.killNode(node)
  else if (nodes.length < 3) world.startNode()
}

/** Asserts that every list is complete, every change fits the state before it, and the final state is `truth`. */
export function checkFrames(frames: readonly ServerFrame[], truth: readonly string[], where: string): void {
  let knownConnections = null as Map<string, string> | null
  let list: [string, string][] = []
  for (const frame of frames) {
    if (frame.type === 'presence') {
      for (const each of frame.connections) list.push([each.connection_id, each.key_id])
      if (frame.more) continue
      knownConnections = new Map(list)
      assert.equal(knownConnections.size, list.length, `${where}: a connection is twice in a list`)
      list = []
    } else if (frame.type === 'joined') {
      const { connection_id, key_id } = frame.connection
      assert.ok(knownConnections, `${where}: joined before the list`)
      assert.notEqual(knownConnections.get(connection_id), key_id, `${where}: joined twice, ${connection_id}`)
      knownConnections.set(connection_id, key_id)
    } else if (frame.type === 'left') {
      assert.ok(
        knownConnections?.delete(frame.connection_id),
        `${where}: left without joining, ${frame.connection_id}`,
      )
    } else if (frame.type === 'pong') knownConnections = null
    else assert.equal(frame.type, 'error', where)
  }
  assert.deepEqual(
    [...(knownConnections?.keys() ?? [])].sort(),
    knownConnections ? truth : [],
    `${where}: a gap or a ghost`,
  )
}
