import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { createJourney, type Journey } from '../support/journey.ts'
import { type ServedProcess, serve, temporaryFolder } from '../support/serve.ts'

/** The last step that is acknowledged before the kill of each round, in order. */
const STAGES = ['nothing', 'session', 'key', 'revocation'] as const
type Stage = (typeof STAGES)[number]
const ROUNDS_OF_EACH = 2
/** About the duration of a step, so that a kill falls into one of the next two. */
const STEP_MS = 20

/** The acknowledged changes of one journey. */
interface Acknowledged {
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

  const kept: Acknowledged[] = []
  for (let round = 0; round < ROUNDS_OF_EACH * STAGES.length; round++) {
    const told: Acknowledged = { email: `round-${round}@example.com` }
    await killAfter(STAGES[round % STAGES.length]!, server, reached => travel(journey, told, reached))
    server = await serve(settings)
    await assertKept(server, journey, told)
    kept.push(told)
  }
  const count = (isTold: (told: Acknowledged) => unknown) => kept.filter(isTold).length
  assert.ok(
    count(({ accessToken }) => accessToken) >= 3 * ROUNDS_OF_EACH,
    'too few sessions were acknowledged',
  )
  assert.ok(count(({ key }) => key) >= 2 * ROUNDS_OF_EACH, 'too few keys were acknowledged')
  assert.ok(count(({ revoked }) => revoked) >= ROUNDS_OF_EACH, 'too few revocations were acknowledged')
})

/** Runs the journey until the service is killed, and records acknowledged changes. */
async function travel(journey: Journey, told: Acknowledged, reached: (stage: Stage) => void): Promise<void> {
  reached('nothing')
  await journey.sendLink(told.email)
  const token = await journey.readToken(told.email)
  told.accessToken = (await journey.verify(told.email, token)).access_token
  told.usedToken = token
  reached('session')
  told.key = await journey.createKey(told.accessToken, 'kept')
  reached('key')
  await journey.exchange(told.key.key)
  await journey.revoke(told.accessToken, told.key.id)
  told.revoked = true
  reached('revocation')
}

/** Kills the service shortly after the stage, during the journey. @throws if the journey fails before */
async function killAfter(
  stage: Stage,
  server: ServedProcess,
  travelling: (reached: (stage: Stage) => void) => Promise<void>,
): Promise<void> {
  const reached = Promise.withResolvers<void>()
  const travelled = travelling(now => now === stage && reached.resolve())
  await Promise.race([reached.promise, travelled])
  const settled = travelled.catch(() => undefined)
  await new Promise(resolve => setTimeout(resolve, randomInt(STEP_MS)))
  await server.end('SIGKILL')
  await settled
}

async function assertKept(server: ServedProcess, journey: Journey, told: Acknowledged): Promise<void> {
  if (!told.accessToken) return
  const me = await journey.me(told.accessToken)
  assert.deepEqual([me.balance.amount, me.subscription.plan], ['2.00', 'free'])
  await assert.rejects(journey.verify(told.email, told.usedToken!), /magic_link_used/)
  if (!told.key) return
  const answer = await fetch(`${server.url}/auth/agent-token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: told.key.key }),
  })
  // A revocation without a response may have happened or not; an acknowledged one has.
  if (told.revoked) assert.equal(answer.status, 401)
  else assert.ok([200, 401].includes(answer.status), `the key that was told of is known (${answer.status})`)
  if (answer.status === 401) assert.match(await answer.text(), /api_key_revoked/)
}
