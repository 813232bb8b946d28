import { setTimeout as wait } from 'node:timers/promises'
import { call, verifyLink } from '../support/nodes.ts'
import { unpackPreviousVersion } from '../support/previous-version.ts'
import { startRedis } from '../support/redis.ts'
import { checkMessages, type Person } from './message-probe.ts'
import { type RevocationProbe, watchRevocations } from './revocation-probe.ts'
import { type ScenarioResult, type World, withWorld } from './world.ts'

/** How long each combination of versions serves in a full run (`scale` 1). */
const PHASE_MS = 6000

/**
 * Replaces two nodes of the previous version one after the other under load. Checks with every combination of versions
 * that no acknowledged write is lost, every revocation closes its connections on both nodes in time, nodes of the same
 * version relay messages to each other, and `delivered` never counts a message that did not arrive.
 */
export async function rollingUpgrade(
  carrier: 'postgres' | 'redis',
  seed: number,
  scale: number,
): Promise<ScenarioResult> {
  const previousVersion = unpackPreviousVersion()
  const redis = carrier === 'redis' ? await startRedis() : null
  const upgradedNodes = new Set<number>()
  try {
    return await withWorld(
      seed,
      {
        engine: 'postgres',
        version: node => (upgradedNodes.has(node) ? undefined : previousVersion),
        settings: (): Record<string, string> => (redis ? { KEYWAY_EVENTS_URL: redis.url } : {}),
      },
      world => world.underLoad(() => upgradeUnderLoad(world, upgradedNodes, PHASE_MS * scale)),
    )
  } finally {
    await redis?.kill()
    previousVersion.remove()
  }
}

async function upgradeUnderLoad(world: World, upgraded: Set<number>, phaseMs: number): Promise<void> {
  // There are two users because messages to `all` reach every connection of a user, and must not reach those of the
  // revocation probe.
  const person = await signInAt(world, 'messages@example.com')
  const revocationProbe = watchRevocations(world, await signInAt(world, 'revocations@example.com'))
  const servePhase = async (phase: string, isMixed: boolean) => {
    await probeMessages(world, person, phase, isMixed)
    await wait(phaseMs)
    await expectAlive(world, phase)
    noteRevocations(world, phase, revocationProbe)
  }
  try {
    await servePhase('before the upgrade', false)
    await upgradeNode(world, 0, upgraded)
    await servePhase('one node upgraded', true)
    await upgradeNode(world, 1, upgraded)
    await servePhase('after the upgrade', false)
  } finally {
    await revocationProbe.stop()
  }
}

async function probeMessages(world: World, person: Person, phase: string, isMixed: boolean): Promise<void> {
  const { count, violations } = await checkMessages(world.origins, person, isMixed)
  world.notes.push(`${phase}: ${count} messages`)
  world.history.violations.push(...violations.map(each => `${phase}: ${each}`))
}

async function expectAlive({ origins, history }: World, phase: string): Promise<void> {
  for (const origin of origins) {
    const answer = await call(origin, 'GET', '/livez').catch(() => null)
    if (answer?.status !== 200) history.violations.push(`${phase}: a node has ended`)
  }
}

function noteRevocations({ notes, history }: World, phase: string, revocations: RevocationProbe): void {
  const { count, longestMs } = revocations.sinceLast()
  notes.push(
    `${phase}: ${count} connections of revoked keys closed, at most ${Math.round(longestMs)} ms later`,
  )
  if (count === 0) history.violations.push(`${phase}: no revocation was watched`)
}

async function upgradeNode(world: World, node: number, upgraded: Set<number>): Promise<void> {
  const status = await world.stopNode(node)
  if (status !== 0) world.history.violations.push(`a node ended with ${status} instead of 0`)
  upgraded.add(node)
  world.faults++
  await world.startNode(node)
}

async function signInAt(world: World, email: string): Promise<Person> {
  const origin = world.origins[0]!
  await call(origin, 'POST', '/auth/send-magic-link', { body: { email } })
  const session = (await verifyLink(origin, email, (await world.target.mail(email, 20_000))!)).body
  return { token: session.access_token }
}
