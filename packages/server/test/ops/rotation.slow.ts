import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { PUBLISHED_BEFORE_USE } from '../../src/signing-keys/signing-keys.ts'
import { postgresMissing } from '../support/engines.ts'
import { startNodeProcess } from '../support/node-processes.ts'
import { createPrintedLinks, freshPostgres, NODE_SETTINGS } from '../support/nodes.ts'
import { environment, launcher } from '../support/serve.ts'
import { startPair, startTraffic } from './rotation-traffic.ts'

const OLD_SECRET = randomBytes(32).toString('base64')
const NEW_SECRET = randomBytes(32).toString('base64')
const SOME_CALLS = 200
/** How long both nodes must sign with the new key. */
const SIGNING_MS = 10_000
const MAX_SWITCH_MS = PUBLISHED_BEFORE_USE + 60_000

test('signing keys, KEYWAY_SECRET and app secrets rotate on a pair of processes: both go over to the new key under traffic, no request fails, and every token verifies', {
  skip: postgresMissing(),
  timeout: 240_000,
}, async t => {
  const url = await freshPostgres(t)
  const links = createPrintedLinks()
  const settings = (listed: string) => ({ KEYWAY_DATABASE_URL: url, KEYWAY_SECRET: listed })
  const keyway = async (listed: string, ...args: string[]) => {
    const env = environment({ ...NODE_SETTINGS, ...settings(listed) })
    return (await promisify(execFile)(process.execPath, [launcher, ...args], { env })).stdout
  }
  const pair = await startPair(async listed => {
    const { origin, served } = await startNodeProcess(t, settings(listed), links)
    return { origin, stop: async () => assert.equal(await served.end('SIGTERM'), 0) }
  }, OLD_SECRET)
  await keyway(OLD_SECRET, 'apps', 'add', 'shop', '--name', 'Shop')
  const firstSecret = (await keyway(OLD_SECRET, 'apps', 'secret', 'shop')).trim()
  const traffic = startTraffic(pair, links, { people: 3, appSecret: firstSecret })
  await traffic.answered(SOME_CALLS)
  const kidsBefore = new Set([...traffic.signers.keys()].map(kidOf))
  assert.equal(kidsBefore.size, 1)

  const rotatedAt = performance.now()
  const { kid } = JSON.parse(await keyway(OLD_SECRET, 'keys', 'rotate-signing', '--json'))
  const newAppSecret = (await keyway(OLD_SECRET, 'apps', 'secret', 'shop')).trim()
  await traffic.answered(SOME_CALLS)
  traffic.appSecret.current = newAppSecret
  await pair.restartOneByOne(`${OLD_SECRET},${NEW_SECRET}`)
  await pair.restartOneByOne(`${NEW_SECRET},${OLD_SECRET}`)
  await keyway(`${NEW_SECRET},${OLD_SECRET}`, 'keys', 'reseal')
  await pair.restartOneByOne(NEW_SECRET)
  assert.deepEqual(
    new Set([...traffic.signers.keys()].map(kidOf)),
    kidsBefore,
    'the new key does not sign yet',
  )

  const signsSince = (origin: string) =>
    traffic.signers.get(`${origin} ${kid}`)?.since ?? Number.POSITIVE_INFINITY
  const areBothSigning = () =>
    pair.live().every(({ origin }) => performance.now() - signsSince(origin) > SIGNING_MS)
  while (!areBothSigning() && performance.now() - rotatedAt < MAX_SWITCH_MS)
    await traffic.answered(SOME_CALLS)
  await traffic.stop()

  assert.deepEqual(traffic.failures, [])
  for (const { origin } of pair.live()) {
    const signsAfterMs = signsSince(origin) - rotatedAt
    assert.ok(
      signsAfterMs >= PUBLISHED_BEFORE_USE - 1_000 && signsAfterMs < MAX_SWITCH_MS,
      `${origin} signs after ${signsAfterMs} ms`,
    )
    const { tokens } = traffic.signers.get(`${origin} ${kid}`)!
    t.diagnostic(
      `${origin}: the new key signed after ${Math.round(signsAfterMs)} ms, then ${tokens} agent tokens`,
    )
    assert.ok(tokens > 20)
  }
  t.diagnostic(JSON.stringify(traffic.counts))
  for (const [name, count] of Object.entries(traffic.counts)) assert.ok(count >= 3, `${name}: ${count}`)
})

function kidOf(signer: string): string {
  return signer.split(' ')[1]!
}
