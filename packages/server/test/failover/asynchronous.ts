import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Finding } from '../../src/administration/finding.ts'
import type { ReplayReport } from '../../src/operations/replay-report.ts'
import { type World, withWorld } from '../faults/world.ts'
import { keyway } from '../support/command-line.ts'
import { NODE_SETTINGS } from '../support/nodes.ts'
import { temporaryFolder } from '../support/serve.ts'
import { createFacts, type Losses, lostFacts } from './facts.ts'
import { startLoad } from './load.ts'
import { type PatroniCluster, startCluster } from './patroni.ts'
import { createObserver, newAppSecret, untilServing } from './synchronous.ts'

const PEOPLE = 4
/** How long the load runs while the standby replicates, and then while it is cut off. */
const REPLICATING_MS = 5000
const CUT_OFF_MS = 4000

/**
 * Cuts off an asynchronous standby for some seconds before a failover, and checks what the failover loses, what `keyway
 * journal replay` restores, and what `keyway doctor` reports before the failover and at the end.
 */
export async function asynchronousFailover(seed: number): Promise<string[]> {
  await using cluster = await startCluster({ synchronous: false })
  const folder = temporaryFolder()
  const settings = (node: number) => ({ KEYWAY_JOURNAL_DIR: join(folder.path, `node${node}`) })
  try {
    const { violations } = await withWorld(
      seed,
      { engine: 'postgres', databaseUrl: cluster.url, settings },
      async world => ({
        faults: 1,
        operations: 0,
        notes: [],
        violations: await loseAndReplay(world, cluster, folder.path, seed),
      }),
    )
    return violations
  } finally {
    folder.remove()
  }
}

async function loseAndReplay(
  world: World,
  cluster: PatroniCluster,
  folder: string,
  seed: number,
): Promise<string[]> {
  console.log(`Asynchronous standby, seed ${seed}`)
  const violations: string[] = []
  const settings = {
    ...NODE_SETTINGS,
    KEYWAY_DATABASE_URL: cluster.url,
    KEYWAY_JOURNAL_DIR: join(folder, 'all'),
  }
  const facts = createFacts()
  const load = await startLoad(world, facts, {
    people: PEOPLE,
    appSecret: await newAppSecret(cluster.url),
    seed,
  })
  await wait(REPLICATING_MS)
  violations.push(...(await expectWarning('before', settings)))

  cluster.replicate(false)
  await wait(CUT_OFF_MS)
  const killedAt = performance.now()
  const killedMachine = await cluster.killPrimary()
  await cluster.untilTakenOver(killedMachine)
  await untilServing(world.history, killedAt)
  await load.stop()
  const losses = await lostFacts(facts, createObserver(load.people))
  console.log(`  lost by the failover: ${textOfLosses(losses)}`)
  if (losses.revocations.length === 0 || losses.balances.length === 0)
    violations.push('the failover lost nothing, so the replay was not tested')

  for (const node of [0, 1]) cpSync(join(folder, `node${node}`), join(folder, 'all'), { recursive: true })
  const { counts } = await replay(settings, '--dry-run')
  const report = await replay(settings)
  console.log(`  replayed: ${textOfReplayed(report)}`)
  if (textOfReplayed({ counts }) !== textOfReplayed(report))
    violations.push('the dry run announced another replay')
  const lostAfterReplay = await lostFacts(facts, createObserver(load.people))
  console.log(`  lost after the replay: ${textOfLosses(lostAfterReplay)}`)
  violations.push(...lostAfterReplay.revocations.map(id => `key ${id} works again after the replay`))
  violations.push(...lostAfterReplay.balances.map(id => `the balance of ${id} is wrong after the replay`))

  cluster.start(killedMachine)
  cluster.replicate(true)
  await cluster.untilReplicated()
  violations.push(...(await expectWarning('after', settings)))
  for (const { agents } of load.people) for (const agent of agents) agent.close()
  return [...violations, ...world.history.violations]
}

function textOfLosses({ keys, revocations, balances }: Losses): string {
  return `${keys.length} created keys, ${revocations.length} revocations, charges of ${balances.length} accounts`
}

async function replay(settings: Record<string, string>, ...words: string[]) {
  const { status, out, err } = await keyway(settings, 'journal', 'replay', '--json', ...words)
  if (status !== 0) throw new Error(`keyway journal replay: ${err}${out}`)
  return JSON.parse(out) as Pick<ReplayReport, 'counts'>
}

function textOfReplayed({ counts }: Pick<ReplayReport, 'counts'>): string {
  const replayedKinds = Object.entries(counts).filter(([, count]) => count.replayed > 0)
  return replayedKinds.map(([kind, count]) => `${kind.replaceAll('_', ' ')} ${count.replayed}`).join(', ')
}

/**
 * Runs `keyway doctor`, which must warn of the asynchronous standby, and find database, audit and signing keys in
 * order. Returns the violations.
 */
async function expectWarning(when: string, settings: Record<string, string>): Promise<string[]> {
  const { out } = await keyway(settings, 'doctor', '--json')
  const { findings } = JSON.parse(out) as { findings: Finding[] }
  const findingOf = (name: string) => findings.find(({ check }) => check === name)!
  console.log(`  doctor ${when}: ${findingOf('standbys').detail}`)
  const failedFindings = ['database', 'signing keys', 'audit'].map(findingOf).filter(({ ok }) => !ok)
  return [
    ...(findingOf('standbys').ok
      ? [`doctor did not warn of the asynchronous standby ${when} the failover`]
      : []),
    ...failedFindings.map(({ check, detail }) => `doctor ${when} the failover: ${check}: ${detail}`),
  ]
}
