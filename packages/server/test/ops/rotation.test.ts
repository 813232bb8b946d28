import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { postgresMissing } from '../support/engines.ts'
import { call, createPrintedLinks, freshPostgres, startNode } from '../support/nodes.ts'
import { runCommand } from './command.ts'
import { startPair, startTraffic } from './rotation-traffic.ts'

const OLD_SECRET = randomBytes(32).toString('base64')
const NEW_SECRET = randomBytes(32).toString('base64')
/** Enough calls for every kind to be made on both nodes. */
const SOME_CALLS = 200

/** The new signing key is only published here; rotation.slow.ts waits until it signs. */
test('KEYWAY_SECRET, signing keys and app secrets rotate on a running pair of nodes without a failed request', {
  skip: postgresMissing(),
}, async t => {
  const url = await freshPostgres(t)
  const links = createPrintedLinks()
  const pair = await startPair(async listed => {
    const node = await startNode(t, { KEYWAY_DATABASE_URL: url, KEYWAY_SECRET: listed }, links)
    return { ...node, stop: () => node.close() }
  }, OLD_SECRET)
  const services = () => pair.live()[0]!.services
  await services().apps.register({ id: 'shop', name: 'Shop', audience: null, verifyUrl: null })
  const traffic = startTraffic(pair, links, {
    people: 4,
    appSecret: (await services().apps.newSecret('shop')).secret,
  })

  await pair.restartOneByOne(`${OLD_SECRET},${NEW_SECRET}`)
  await pair.restartOneByOne(`${NEW_SECRET},${OLD_SECRET}`)
  const { kid } = await services().signingKeys.rotate(BY_COMMAND_LINE)
  const newAppSecret = (await services().apps.newSecret('shop')).secret
  await traffic.answered(SOME_CALLS)
  traffic.appSecret.current = newAppSecret
  await traffic.answered(SOME_CALLS)
  await runCommand(services(), 'keys reseal')
  const { secrets, storage } = services()
  const countsBySecret = await storage.store.instance.countBySecret()
  assert.deepEqual([...countsBySecret.keys()], [secrets.fingerprint])
  await pair.restartOneByOne(NEW_SECRET)
  const keyResponses = await Promise.all(
    pair.live().map(({ origin }) => call(origin, 'GET', '/.well-known/jwks.json')),
  )
  for (const { body } of keyResponses) assert.ok(body.keys.some((key: { kid: string }) => key.kid === kid))

  await traffic.stop()
  assert.deepEqual(traffic.failures, [])
  for (const [name, count] of Object.entries(traffic.counts)) assert.ok(count > 3, `${name}: ${count}`)
})
