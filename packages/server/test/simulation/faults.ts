import type { Random } from '../support/random.ts'
import { SimulatedProcess } from './scheduler.ts'
import type { World } from './world.ts'

/** Which faults a run has, and how often. */
export interface Profile {
  name: string
  /** The shares of calls, commits, hints (all events but those of the relay) and mail deliveries that have a fault. */
  calls: number
  commits: number
  hints: number
  mail: number
  /** The faults from which the saboteur picks one after the other. */
  acts: readonly FaultName[]
}

type FaultName = keyof typeof FAULTS

const PROFILES: Profile[] = [
  { name: 'calm', calls: 0, commits: 0, hints: 0, mail: 0, acts: ['breakLine', 'restart'] },
  { name: 'network', calls: 0.05, commits: 0, hints: 0.3, mail: 0.1, acts: ['breakLine', 'cutOff', 'forge'] },
  {
    name: 'database',
    calls: 0.02,
    commits: 0.08,
    hints: 0.1,
    mail: 0.1,
    acts: ['restartDatabase', 'slowDatabase', 'breakLine'],
  },
  {
    name: 'crashes',
    calls: 0.02,
    commits: 0.02,
    hints: 0.1,
    mail: 0.2,
    acts: ['crash', 'crash', 'restart', 'breakLine'],
  },
  {
    name: 'clocks',
    calls: 0.02,
    commits: 0.02,
    hints: 0.1,
    mail: 0.1,
    acts: ['pause', 'slowNode', 'stepSystemClock', 'stepDatabaseClock'],
  },
  {
    name: 'everything',
    calls: 0.04,
    commits: 0.04,
    hints: 0.3,
    mail: 0.2,
    acts: [
      'breakLine',
      'cutOff',
      'forge',
      'restartDatabase',
      'slowDatabase',
      'crash',
      'restart',
      'pause',
      'slowNode',
      'stepSystemClock',
    ],
  },
]

export function profileOf(seed: number): Profile {
  return PROFILES[seed % PROFILES.length]!
}

/** Causes the faults of a profile while people act. `heal` ends them, except stepped clocks and pauses of nodes. */
export class Saboteur extends SimulatedProcess {
  readonly #world: World
  readonly #profile: Profile

  constructor(world: World, profile: Profile) {
    super('saboteur')
    this.#world = world
    this.#profile = profile
  }

  start(): void {
    const { calls, server, broker, mail } = this.#world
    calls.loss = this.#profile.calls
    server.faults.commitFaults = this.#profile.commits
    broker.hintFaults = this.#profile.hints
    mail.faults = this.#profile.mail
    this.#next()
  }

  heal(): void {
    const { calls, server, broker, mail, nodes } = this.#world
    calls.loss = 0
    server.faults.commitFaults = 0
    server.faults.latencyMs = 1
    broker.hintFaults = 0
    mail.faults = 0
    for (const node of nodes) {
      node.tasksLeft = Number.POSITIVE_INFINITY
      node.taskMs = 0
      node.heal()
    }
  }

  #next(): void {
    const { scheduler, random } = this.#world
    scheduler.after(this, random.between(200, 4000), 'fault', () => {
      if (this.#world.isResting) return
      const act = random.pick(this.#profile.acts)
      this.#world.note(`fault: ${act}`)
      FAULTS[act](this.#world, random, this)
      this.#next()
    })
  }
}

const FAULTS = {
  breakLine(world: World, random: Random) {
    random.pick(world.robots)?.line?.cut(random.between(0, 500), random.pick([null, random.between(0, 2000)]))
  },
  cutOff(world: World, random: Random, by: SimulatedProcess) {
    const node = world.anyNode()
    if (!node) return
    node.cutOff()
    world.scheduler.after(by, random.between(500, 20_000), 'heal', () => node.heal())
  },
  forge(world: World) {
    world.broker.forge()
  },
  restartDatabase(world: World, random: Random) {
    world.server.dropAll(random.next() < 0.5)
  },
  slowDatabase(world: World, random: Random, by: SimulatedProcess) {
    world.server.faults.latencyMs = random.pick([20, 200, 1500])
    world.scheduler.after(by, random.between(500, 8000), 'fast again', () => {
      world.server.faults.latencyMs = 1
    })
  },
  /** Crashes a node between two of its tasks, which are separated by an `await`: the later one never runs. */
  crash(world: World, random: Random) {
    const node = world.anyNode()
    if (!node) return
    node.tasksLeft = random.between(1, 60)
    node.onCrash = () => world.crash(node)
  },
  restart(world: World) {
    if (world.nodes.every(({ isDraining }) => !isDraining)) world.replace(world.anyNode())
  },
  pause(world: World, random: Random) {
    world.anyNode()?.pause(world.now + random.between(500, 15_000))
  },
  slowNode(world: World, random: Random, by: SimulatedProcess) {
    const node = world.anyNode()
    if (!node) return
    node.taskMs = random.pick([1, 3])
    world.scheduler.after(by, random.between(500, 5000), 'fast again', () => {
      node.taskMs = 0
    })
  },
  stepSystemClock(world: World, random: Random) {
    const node = world.anyNode()
    if (node) node.systemOffset = random.pick([-3_600_000, -5000, 0, 5000, 3_600_000])
  },
  stepDatabaseClock(world: World, random: Random) {
    world.server.clockOffset += random.between(-500, 500)
  },
} satisfies Record<string, (world: World, random: Random, by: SimulatedProcess) => void>
