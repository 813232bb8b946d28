import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { createJourney, type Journey } from '../support/journey.ts'
import { type ServedProcess, serve, temporaryFolder } from '../support/serve.ts'

/** In each round the service is killed after one of these steps was acknowledged. */
const STAGES = ['nothing', 'session', 'key', 'revocation'] as const
type Stage = (typeof STAGES)[number]
const ROUNDS_OF_EACH = 2
/** Roughly the duration of a step. The kill comes a random time below this after the stage, in a later step. */
const STEP_MS = 20

interface AcknowledgedChanges {
  email: string
  accessToken?: string
  usedToken?: string
  key?: { id: string; key: string }
  revoked?: boolean
}

test('a kill at any moment loses no acknowledged change', async t => {
  const folder = temporaryFolder()
  t.after(folder.remove)
  const settings = {
    KEYWAY_DATA_DIR: join(folder.path, 'data'),
    KEYWAY_PORT: String(await freePort()),
    KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off',
    KEYWAY_FAILURE_LIMITS: '1000/minute',
  }
  let server = await serve(settings)
  t.after(() => server.end('SIGKILL'))
  const journey = createJourney(server.url)

  const acknowledgedRounds: AcknowledgedChanges[] = []
  for (let round = 0; round < ROUNDS_OF_EACH * STAGES.length; round++) {
    const acknowledged: AcknowledgedChanges = { email: `round-${round}@example.com` }
    await killAfter(STAGES[round % STAGES.length]!, server, reached =>
      runJourney(journey, acknowledged, reached),
    )
    server = await serve(settings)
    await assertAcknowledgedIsStored(server, journey, acknowledged)
    acknowledgedRounds.push(acknowledged)
  }
  const count = (matches: (acknowledged: AcknowledgedChanges) => unknown) =>
    acknowledgedRounds.filter(matches).length
  assert.ok(
    count(({ accessToken }) => accessToken) >= 3 * ROUNDS_OF_EACH,
    'too few sessions were acknowledged',
  )
  assert.ok(count(({ key }) => key) >= 2 * ROUNDS_OF_EACH, 'too few keys were acknowledged')
  assert.ok(count(({ revoked }) => revoked) >= ROUNDS_OF_EACH, 'too few revocations were acknowledged')
})

/** Runs the journey until the service is killed, and records acknowledged changes. */
async function runJourney(
  journey: Journey,
  acknowledged: AcknowledgedChanges,
  reached: (stage: Stage) => void,
): Promise<void> {
  reached('nothing')
  await journey.sendLink(acknowledged.email)
  const token = await journey.readToken(acknowledged.email)
  acknowledged.accessToken = (await journey.verify(acknowledged.email, token)).access_token
  acknowledged.usedToken = token
  reached('session')
  acknowledged.key = await journey.createKey(acknowledged.accessToken, 'kept')
  reached('key')
  await journey.exchange(acknowledged.key.key)
  await journey.revoke(acknowledged.accessToken, acknowledged.key.id)
  acknowledged.revoked = true
  reached('revocation')
}

/** Kills the service shortly after the journey has reached the stage. @throws if the journey fails before that */
async function killAfter(
  stage: Stage,
  server: ServedProcess,
  startJourney: (reached: (stage: Stage) => void) => Promise<void>,
): Promise<void> {
  const stageReached = Promise.withResolvers<void>()
  const pendingJourney = startJourney(now => now === stage && stageReached.resolve())
  await Promise.race([stageReached.promise, pendingJourney])
  const untilJourneySettled = pendingJourney.catch(() => undefined)
  await new Promise(resolve => setTimeout(resolve, randomInt(STEP_MS)))
  await server.end('SIGKILL')
  await untilJourneySettled
}

async function assertAcknowledgedIsStored(
  server: ServedProcess,
  journey: Journey,
  acknowledged: AcknowledgedChanges,
): Promise<void> {
  if (!acknowledged.accessToken) return
  const me = await journey.me(acknowledged.accessToken)
  assert.deepEqual([me.balance.amount, me.subscription.plan], ['2.00', 'free'])
  await assert.rejects(journey.verify(acknowledged.email, acknowledged.usedToken!), /magic_link_used/)
  if (!acknowledged.key) return
  const answer = await fetch(`${server.url}/auth/agent-token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: acknowledged.key.key }),
  })
  // A revocation that was not answered may have taken effect or not; an acknowledged one must have.
  if (acknowledged.revoked) assert.equal(answer.status, 401)
  else assert.ok([200, 401].includes(answer.status), `the acknowledged key exists (${answer.status})`)
  if (answer.status === 401) assert.match(await answer.text(), /api_key_revoked/)
}
