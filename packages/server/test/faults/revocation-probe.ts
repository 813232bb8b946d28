import { setTimeout as wait } from 'node:timers/promises'
import { connectHub, createKey, exchange, type HubSocket, revokeKey } from '../support/nodes.ts'
import { patienceMs } from '../support/patience.ts'
import type { Person } from './message-probe.ts'
import type { World } from './world.ts'

/** How often nodes of every version poll the database for revocations. */
const SWEEP_MS = 1000
/** Tolerance for this load on an otherwise idle machine with two cores. */
const SLACK_MS = 1500
const CLOSE_REVOKED = 4410

export interface RevocationProbe {
  /**
   * The connections that closed because of a revocation since the last call: their number, and the longest time from
   * the answer of a revocation to the close of a connection, 0 if none closed.
   */
  sinceLast(): { count: number; longestMs: number }
  /** Ends the revocations; resolves after the current one. */
  stop(): Promise<void>
}

/** Revokes keys one after the other, each with a connection on every node that accepts one. */
export function watchRevocations(world: World, person: Person): RevocationProbe {
  let isOver = false
  let closeTimesMs: number[] = []
  const revocationLoop = (async () => {
    while (!isOver) await revokeOneKey(world, person, ms => closeTimesMs.push(ms))
  })()
  return {
    sinceLast() {
      const times = closeTimesMs
      closeTimesMs = []
      return { count: times.length, longestMs: Math.max(0, ...times) }
    },
    async stop() {
      isOver = true
      await revocationLoop
    },
  }
}

async function revokeOneKey(world: World, { token }: Person, record: (ms: number) => void): Promise<void> {
  const creationAnswer = await atAnyNode(world, origin => createKey(origin, token))
  const agentToken = (await atAnyNode(world, origin => exchange(origin, creationAnswer.body.key))).body.token
  const pendingConnections = world.origins.map(origin => connectHub(origin, agentToken))
  const connections = (await Promise.allSettled(pendingConnections)).flatMap(each =>
    each.status === 'fulfilled' ? [each.value] : [],
  )
  const node = world.random.below(world.origins.length)
  await atAnyNode(world, origin => revokeKey(origin, token, creationAnswer.body.id), node)
  const answeredAt = performance.now()
  await Promise.all(connections.map(each => watchClose(world, each, answeredAt, record)))
}

async function watchClose(
  world: World,
  { closed, socket }: HubSocket,
  answeredAt: number,
  record: (ms: number) => void,
): Promise<void> {
  const close = await Promise.race([closed, wait(patienceMs(SWEEP_MS + SLACK_MS)).then(() => null)])
  if (close === null) {
    world.history.violations.push(
      `a connection of a revoked key was still open after ${Math.round(performance.now() - answeredAt)} ms`,
    )
    socket.terminate()
  } else if (close.code === CLOSE_REVOKED) record(Math.max(0, close.at - answeredAt))
}

/** Tries the nodes in turn until one answers, like a balancer. */
async function atAnyNode<Answer extends { status: number }>(
  world: World,
  call: (origin: string) => Promise<Answer>,
  first = 0,
): Promise<Answer> {
  for (let attempt = first; ; attempt++) {
    const answer = await call(world.origins[attempt % world.origins.length]!).catch(() => null)
    if (answer && answer.status < 500) return answer
    await wait(50)
  }
}
