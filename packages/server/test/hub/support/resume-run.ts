import { mock } from 'node:test'
import { Random } from '../../support/random.ts'
import { type AgentHistory, checkHistories } from './resume-history.ts'
import { ResumeWorld } from './resume-world.ts'

const [START_MS, LONGEST_MS, SETTLE_MS] = [2000, 15_000, 45_000]
/** From this seed on, agents that send also move between nodes during partitions. */
export const FIRST_SEED_WITH_MOVES = 10_001
const MOVE_PROBABILITY = 0.05
/** From this seed on, messages are addressed to connections, too. */
export const FIRST_SEED_WITH_IDS = 20_001

export interface Summary {
  received: number
  gaps: number
  held: number
}

/**
 * Checks consecutive seeds. `npm run test:resume -- --seed n` repeats a failing one.
 *
 * @param onViolation called instead of throwing
 * @throws Error with the seed and the message of the violation
 */
export async function checkSeeds(
  first: number,
  count: number,
  onViolation?: (seed: number, error: Error) => void,
): Promise<Summary> {
  const total: Summary = { received: 0, gaps: 0, held: 0 }
  for (let seed = first; seed < first + count; seed++) {
    try {
      const { received, gaps, held } = await checkSeed(seed)
      total.received += received
      total.gaps += gaps
      total.held += held
    } catch (error) {
      const { message } = error as Error
      if (onViolation) onViolation(seed, error as Error)
      else throw new Error(`seed ${seed}: ${message}`, { cause: error })
    }
  }
  return total
}

/**
 * Runs agents and faults on two or three nodes from a seed, and checks the histories of all agents. Even seeds have
 * only faults that must not lose a message: broken connections, rolling restarts, delays.
 *
 * @throws AssertionError
 */
async function checkSeed(seed: number): Promise<Summary> {
  const random = new Random(seed)
  const isLossless = seed % 2 === 0
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  // Messages between nodes arrive in simulated time; by the real clock, a pause of the process would make them too late.
  const realClock = mock.method(performance, 'now', () => 0)
  try {
    const world = new ResumeWorld(random, mock.timers)
    world.namesConnections = seed >= FIRST_SEED_WITH_IDS
    for (let n = random.between(2, 3); n > 0; n--) world.startNode()
    await world.run(START_MS)
    for (let n = random.between(3, 6); n > 0; n--) world.addAgent()
    await world.run(START_MS)
    const endsAt = world.clock.now() + random.between(3000, LONGEST_MS)
    while (world.clock.now() < endsAt) {
      if (seed >= FIRST_SEED_WITH_MOVES && random.next() < MOVE_PROBABILITY)
        sendAndMove(world, random, isLossless)
      else performRandomAction(world, random, isLossless)
      await world.run(random.pick([0, 10, 10, 50, 200]))
    }
    for (const node of world.nodes) node.heal()
    world.shared.lag = 20
    await world.run(SETTLE_MS)
    const histories = world.histories
    checkHistories(histories, isLossless)
    const summary = summaryOf(histories)
    await world.end()
    return summary
  } finally {
    realClock.mock.restore()
    mock.timers.reset()
  }
}

function performRandomAction(world: ResumeWorld, random: Random, isLossless: boolean): void {
  const member = random.pick(world.members)
  const node = world.nodes.length > 0 ? random.pick(world.nodes) : null
  const otherNodes = world.nodes.filter(each => each !== node && !each.isDraining && !each.isCutOff)
  const dice = random.next()
  if (dice < 0.75) world.send(member)
  else if (dice < 0.88) world.cut(member, random.between(0, 500), random.between(0, 2000))
  else if (dice < 0.9) world.cut(member, random.between(0, 500), null)
  else if (dice < 0.92) world.pause(member, random.between(100, 2000))
  else if (dice < 0.94) world.shared.lag = random.pick([5, 20, 100])
  else if (dice < 0.955) {
    // In a rolling restart the next node begins to drain only after the previous one has ended.
    const isNoneDraining = world.nodes.every(({ isDraining }) => !isDraining)
    if (node && otherNodes.length > 0 && !node.isDraining && (isNoneDraining || !isLossless))
      world.replace(node)
  } else if (isLossless) world.send(member)
  else if (dice < 0.965) {
    if (node && otherNodes.length > 0) world.kill(node)
    if (world.nodes.length < 2) world.startNode()
  } else if (dice < 0.975) node?.cutOff()
  else if (dice < 0.985) for (const each of world.nodes) each.heal()
  else if (dice < 0.99) world.cut(member, null, null)
  else flood(world, random, member)
}

/**
 * One agent sends to another one, loses its connection, reconnects to any node and sends again; the other may lose its
 * own too. Unless `isLossless`, half of these runs cut one of several nodes off for a moment.
 */
function sendAndMove(world: ResumeWorld, random: Random, isLossless: boolean): void {
  const [from, to] = [random.pick(world.members), random.pick(world.members)]
  const node = random.next() < 0.5 && world.nodes.length > 1 ? random.pick(world.nodes) : null
  if (!isLossless) node?.cutOff()
  for (const member of random.pick([[from, to], [to, from], [from]])) {
    for (let n = random.between(1, 3); n > 0; n--) world.send(from, 0, to)
    world.cut(member, random.between(0, 50), random.between(0, 500))
  }
  for (let n = random.between(1, 3); n > 0; n--) world.send(from, 0, to)
  if (node && !isLossless) setTimeout(() => node.heal(), random.between(100, 3000))
}

/** Sends more messages than a node keeps for an agent that does not read. */
function flood(world: ResumeWorld, random: Random, member: ResumeWorld['members'][number]): void {
  const to = random.pick(world.members)
  world.pause(to, 5000)
  for (let n = 0; n < 40; n++) world.send(member, 30_000, to)
}

function summaryOf(histories: readonly AgentHistory[]): Summary {
  const sum = (of: (history: AgentHistory) => number) =>
    histories.reduce((total, each) => total + of(each), 0)
  return {
    received: sum(({ received }) => received.length),
    gaps: sum(({ gaps }) => gaps.length),
    held: sum(({ sent }) => sent.filter(({ outcome }) => (outcome?.held ?? 0) > 0).length),
  }
}
