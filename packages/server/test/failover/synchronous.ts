import { setTimeout as wait } from 'node:timers/promises'
import type { History } from '../faults/history.ts'
import { type RevocationProbe, watchRevocations } from '../faults/revocation-probe.ts'
import { type World, withWorld } from '../faults/world.ts'
import { keyway } from '../support/command-line.ts'
import { call, NODE_SETTINGS } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { createFacts, type Facts, longestGap, lostFacts, type Observer, violationsOf } from './facts.ts'
import { exchange, type Load, startLoad, successes, untilAnswered } from './load.ts'
import { type PatroniCluster, startCluster } from './patroni.ts'

const PEOPLE = 4
/** How long the load runs without a fault before each kill, and after the last one. */
const QUIET_MS = 3000
const RECOVERY_MS = 90_000
/** Longer than the longest back-off of an agent. */
const RETURN_MS = 60_000

/**
 * Kills the primary `kills` times under load, each time after the standby has caught up; at the end kills the standby
 * once. Returns the violations.
 */
export async function synchronousFailovers(seed: number, kills: number): Promise<string[]> {
  await using cluster = await startCluster({ synchronous: true })
  const { violations, operations } = await withWorld(
    seed,
    { engine: 'postgres', databaseUrl: cluster.url, people: 2 },
    world => world.underLoad(() => failOver(world, cluster, seed, kills)),
  )
  console.log(`${operations} operations`)
  return violations
}

async function failOver(world: World, cluster: PatroniCluster, seed: number, kills: number): Promise<void> {
  const facts = createFacts()
  const appSecret = await newAppSecret(cluster.url)
  const load = await startLoad(world, facts, { people: PEOPLE, appSecret, seed })
  const probe = watchRevocations(world, { token: load.people[0]!.session.accessToken })
  console.log(`Synchronous standby, seed ${seed}. Seconds without a successful answer:`)
  for (let n = 1; n <= kills; n++) {
    await wait(QUIET_MS)
    load.lostSinceLast()
    probe.sinceLast()
    const killedAt = performance.now()
    const killedMachine = await cluster.killPrimary()
    world.faults++
    await cluster.untilTakenOver(killedMachine)
    await untilServing(world.history, killedAt)
    await until('every agent is connected', () => load.areConnected(), RETURN_MS)
    const connectedAt = performance.now()
    cluster.start(killedMachine)
    await cluster.untilReplicated()
    report(n, killedMachine, { world, load, killedAt, connectedAt, revoked: probe.sinceLast() })
  }
  await loseStandby(world, cluster)
  await probe.stop()
  await load.stop()
  world.history.violations.push(...(await check(facts, load)))
  for (const { agents } of load.people) for (const agent of agents) agent.close()
}

/**
 * Kills the standby, and waits until the primary acknowledges writes without it, as it does once Patroni has noticed.
 */
async function loseStandby({ history }: World, cluster: PatroniCluster): Promise<void> {
  await wait(QUIET_MS)
  const killedAt = performance.now()
  const killedMachine = await cluster.killStandby()
  await untilServing(history, killedAt)
  await wait(QUIET_MS)
  const gap = longestGap(successes(history.operations).writes, killedAt, performance.now())
  console.log(`  standby killed (${killedMachine}): writes ${(gap / 1000).toFixed(1)}`)
}

/** Resolves once a write that began after the kill was acknowledged. */
export async function untilServing({ operations }: History, killedAt: number): Promise<void> {
  await until(
    'a write is acknowledged',
    () => operations.findLast(each => each.outcome === 'ok' && each.op === 'create' && each.start > killedAt),
    RECOVERY_MS,
  )
}

interface FailoverMeasurement {
  world: World
  load: Load
  killedAt: number
  connectedAt: number
  revoked: ReturnType<RevocationProbe['sinceLast']>
}

function report(
  n: number,
  killed: string,
  { world, load, killedAt, connectedAt, revoked }: FailoverMeasurement,
): void {
  const { reads, writes } = successes(world.history.operations)
  const seconds = (ms: number) => (ms / 1000).toFixed(1)
  const gap = (ends: number[]) => seconds(longestGap(ends, killedAt, connectedAt))
  console.log(`  kill ${n} (${killed}): exchanges ${gap(reads)}, writes ${gap(writes)};
    ${load.lostSinceLast()} agents disconnected, all back after ${seconds(connectedAt - killedAt)};
    ${revoked.count} connections of revoked keys closed within ${Math.round(revoked.longestMs)} ms`)
}

async function check(facts: Facts, { people }: Load): Promise<string[]> {
  const losses = await lostFacts(facts, createObserver(people))
  const revokedCount = [...facts.keys.values()].filter(({ state }) => state === 'revoked').length
  const chargedMicros = [...facts.charged.values()].reduce((sum, each) => sum + each, 0)
  console.log(`  acknowledged: ${facts.keys.size} keys (lost ${losses.keys.length}),
    ${revokedCount} revocations (undone ${losses.revocations.length}),
    charges of $${chargedMicros / 1e6} on ${facts.charged.size} accounts (wrong balances ${losses.balances.length})`)
  return violationsOf(losses)
}

/** Observes through requests to the service, which are repeated until they are answered. */
export function createObserver(people: Load['people']): Observer {
  return {
    async exchange(key) {
      const answer = await untilAnswered(() => exchange(people[0]!, key))
      if (!answer) throw new Error('an exchange was not answered after the failovers')
      return answer.status === 200 ? null : answer.body.code
    },
    async balance(userId) {
      const { session, target } = people.find(({ session }) => session.userId === userId)!
      const { status, body } = await call(target.origins()[0]!, 'GET', '/v1/me', {
        token: session.accessToken,
      })
      if (status !== 200) throw new Error(`a session was refused after the failovers: ${status} ${body.code}`)
      return Math.round(Number(body.balance.amount) * 1e6)
    },
  }
}

export async function newAppSecret(url: string): Promise<string> {
  const settings = { ...NODE_SETTINGS, KEYWAY_DATABASE_URL: url }
  const { status, out, err } = await keyway(settings, 'apps', 'secret', 'console', '--json')
  if (status !== 0) throw new Error(`keyway apps secret: ${err}`)
  return JSON.parse(out).secret
}
