import { setTimeout as wait } from 'node:timers/promises'
import { call } from '../support/nodes.ts'
import { patienceMs } from '../support/patience.ts'
import { type ScenarioResult, type World, withWorld } from './world.ts'

const SECOND = 1000
/** When a fault is over, on an idle machine. */
const SERVING_MS = 5 * SECOND

/** Kills a node at a random moment and restarts it, repeatedly. */
export async function killLoop(world: World, rounds: number): Promise<void> {
  const startups: number[] = []
  for (let round = 0; round < rounds; round++) {
    await wait(100 + world.random.below(700))
    const node = round % world.origins.length
    await world.killNode(node)
    world.faults++
    startups.push(await world.startNode(node))
  }
  world.notes.push(`ready after a kill: at most ${Math.round(Math.max(...startups))} ms`)
}

/** Applies a fault for ten seconds, with fault-free time before and after it. */
export async function during(
  world: World,
  scale: number,
  begin: () => unknown,
  end: () => unknown,
): Promise<void> {
  for (let round = 0; round < Math.max(1, Math.round(2 * scale)); round++) {
    await wait(500 + world.random.below(500))
    await begin()
    world.faults++
    await wait((2 + world.random.below(3)) * SECOND * Math.max(0.5, scale))
    await end()
    const took = Math.max(...(await Promise.all(world.origins.map(ready))))
    world.notes.push(`serving ${Math.round(took)} ms after it was over`)
    if (took > patienceMs(SERVING_MS))
      world.history.violations.push(`not serving in time after it was over (${took} ms)`)
    await wait(500)
  }
}

/** The primary is lost; every acknowledged write must be on the standby. */
export function failOver(seed: number, scale: number): Promise<ScenarioResult> {
  return withWorld(seed, { engine: 'postgres' }, async world => {
    const old = world.postgres!
    const standby = await old.startStandby(true)
    try {
      return await world.live(async () => {
        await wait(4 * SECOND * Math.max(0.3, scale))
        await old.crash()
        world.faults++
        await standby.promote()
        world.postgres = standby
        for (const proxy of [...world.databaseProxies, ...world.eventProxies]) proxy.forwardTo(standby.url)
        const took = Math.max(...(await Promise.all(world.origins.map(ready))))
        world.notes.push(`serving ${Math.round(took)} ms after the standby took over`)
        if (took > patienceMs(SERVING_MS))
          world.history.violations.push(`not serving in time after the failover (${took} ms)`)
        await wait(3 * SECOND * Math.max(0.3, scale))
      })
    } finally {
      await standby.remove()
    }
  })
}

async function ready(origin: string): Promise<number> {
  const started = performance.now()
  const giveUpAfter = patienceMs(3 * SERVING_MS)
  while (performance.now() - started < giveUpAfter) {
    const answer = await call(origin, 'GET', '/readyz', {}, 2_000).catch(() => null)
    if (answer?.status === 200) return performance.now() - started
    await wait(25)
  }
  return Number.POSITIVE_INFINITY
}
