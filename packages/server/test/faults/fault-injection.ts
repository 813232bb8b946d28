import { setTimeout as wait } from 'node:timers/promises'
import { call } from '../support/nodes.ts'
import { patienceMs } from '../support/patience.ts'
import { type ScenarioResult, type World, withWorld } from './world.ts'

const SECOND = 1000
/** How long nodes may take to serve again after a fault, on an idle machine. */
const SERVING_MS = 5 * SECOND

/** Kills a node at a random moment and restarts it, repeatedly. */
export async function killLoop(world: World, rounds: number): Promise<void> {
  const startupTimesMs: number[] = []
  for (let round = 0; round < rounds; round++) {
    await wait(100 + world.random.below(700))
    const node = round % world.origins.length
    await world.killNode(node)
    world.faults++
    startupTimesMs.push(await world.startNode(node))
  }
  world.notes.push(`ready after a kill: at most ${Math.round(Math.max(...startupTimesMs))} ms`)
}

/**
 * Applies a fault twice, for two to four seconds each time at scale 1, with fault-free time before and after. Records a
 * violation if a node takes too long to serve again.
 */
export async function applyFault(
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
    const recoveryMs = Math.max(...(await Promise.all(world.origins.map(untilReady))))
    world.notes.push(`serving ${Math.round(recoveryMs)} ms after the fault was over`)
    if (recoveryMs > patienceMs(SERVING_MS))
      world.history.violations.push(`not serving in time after the fault was over (${recoveryMs} ms)`)
    await wait(500)
  }
}

/** Crashes the primary under load; every acknowledged write must be on the standby. */
export function failOver(seed: number, scale: number): Promise<ScenarioResult> {
  return withWorld(seed, { engine: 'postgres' }, async world => {
    const primary = world.postgres!
    const standby = await primary.startStandby(true)
    try {
      return await world.underLoad(async () => {
        await wait(4 * SECOND * Math.max(0.3, scale))
        await primary.crash()
        world.faults++
        await standby.promote()
        world.postgres = standby
        for (const proxy of [...world.databaseProxies, ...world.eventProxies]) proxy.forwardTo(standby.url)
        const recoveryMs = Math.max(...(await Promise.all(world.origins.map(untilReady))))
        world.notes.push(`serving ${Math.round(recoveryMs)} ms after the standby took over`)
        if (recoveryMs > patienceMs(SERVING_MS))
          world.history.violations.push(`not serving in time after the failover (${recoveryMs} ms)`)
        await wait(3 * SECOND * Math.max(0.3, scale))
      })
    } finally {
      await standby.remove()
    }
  })
}

/** Waits until a node is ready; returns the milliseconds that this took, infinity if it takes too long. */
async function untilReady(origin: string): Promise<number> {
  const startedAt = performance.now()
  const giveUpAfterMs = patienceMs(3 * SERVING_MS)
  while (performance.now() - startedAt < giveUpAfterMs) {
    const answer = await call(origin, 'GET', '/readyz', {}, 2_000).catch(() => null)
    if (answer?.status === 200) return performance.now() - startedAt
    await wait(25)
  }
  return Number.POSITIVE_INFINITY
}
