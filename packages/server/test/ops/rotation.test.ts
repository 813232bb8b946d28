import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { basic } from '../support/http.ts'
import {
  call,
  createPrintedLinks,
  exchange,
  freshPostgres,
  refresh,
  signIn,
  startNode,
  type TestNode,
} from '../support/nodes.ts'
import { runCommand } from './command.ts'

const OLD = randomBytes(32).toString('base64')
const NEW = randomBytes(32).toString('base64')

/** A pair of nodes behind what a load balancer does: nothing goes to a node that is being stopped. */
async function startPair(t: TestContext, secrets: string) {
  const url = await freshPostgres(t)
  const links = createPrintedLinks()
  const start = (listed: string) => startNode(t, { KEYWAY_DATABASE_URL: url, KEYWAY_SECRET: listed }, links)
  const nodes: (TestNode | null)[] = [await start(secrets), await start(secrets)]
  let turn = 0
  const underWay = new Map<TestNode, number>()
  return {
    links,
    nodes,
    /** Any node that takes traffic, with the end of the call told. */
    async through<Answer>(ask: (origin: string) => Promise<Answer>): Promise<Answer> {
      const live = nodes.filter(node => node !== null)
      const node = live[turn++ % live.length]!
      underWay.set(node, (underWay.get(node) ?? 0) + 1)
      try {
        return await ask(node.origin)
      } finally {
        underWay.set(node, underWay.get(node)! - 1)
      }
    },
    async restartOneByOne(listed: string) {
      for (const index of nodes.keys()) {
        const leaving = nodes[index]!
        nodes[index] = null
        while ((underWay.get(leaving) ?? 0) > 0) await new Promise(resolve => setImmediate(resolve))
        await leaving.close()
        nodes[index] = await start(listed)
      }
    },
  }
}

/** Every kind of call, over and over, on whichever node is there, until stopped. */
function startTraffic(pair: Awaited<ReturnType<typeof startPair>>, t: TestContext) {
  const failures: string[] = []
  const counts: Record<string, number> = {}
  let stopped = false
  const appSecret = { current: '' }

  async function expect(name: string, status: number, ask: (origin: string) => ReturnType<typeof call>) {
    const answer = await pair.through(ask)
    counts[name] = (counts[name] ?? 0) + 1
    if (answer.status !== status) failures.push(`${name}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async function person(name: string) {
    let {
      access_token: access,
      refresh_token: token,
      user,
    } = await pair.through(origin => signIn(origin, pair.links, `${name}@example.com`))
    const made = await expect('create key', 201, origin =>
      call(origin, 'POST', '/v1/api-keys', { token: access, body: {} }),
    )
    for (let round = 0; !stopped; round++) {
      const { token: agent } = await expect('exchange', 200, origin => exchange(origin, made.key))
      const next = await expect('refresh', 200, origin =>
        refresh(origin, token, randomBytes(12).toString('hex')),
      )
      ;({ access_token: access, refresh_token: token } = next)
      await expect('me', 200, origin => call(origin, 'GET', '/v1/me', { token: access }))
      const headers = basic('shop', appSecret.current)
      for (const presented of [made.key, access, agent]) {
        const answer = await expect('introspect', 200, origin =>
          call(origin, 'POST', '/auth/introspect', { body: { token: presented }, headers }),
        )
        if (answer.active !== true) failures.push('introspect: not active')
      }
      if (round % 5 === 0) {
        const again = await pair.through(origin => signIn(origin, pair.links, `${name}@example.com`))
        assert.equal(again.user.id, user.id)
        counts['sign in'] = (counts['sign in'] ?? 0) + 1
      }
    }
  }
  return {
    failures,
    counts,
    appSecret,
    run: (people: number) => Promise.all(Array.from({ length: people }, (_, at) => person(`person${at}`))),
    stop: () => {
      stopped = true
    },
    t,
  }
}

test('KEYWAY_SECRET, signing keys and app secrets rotate on a running pair of nodes without a failed request', {
  skip: postgresMissing(),
}, async t => {
  const pair = await startPair(t, OLD)
  const services = () => pair.nodes.find(node => node !== null)!.services
  await services().apps.register({ id: 'shop', name: 'Shop', audience: null, verifyUrl: null })
  const traffic = startTraffic(pair, t)
  traffic.appSecret.current = await services().apps.newSecret('shop')
  const running = traffic.run(4)
  running.catch(error => traffic.failures.push(String(error)))

  await pair.restartOneByOne(`${OLD},${NEW}`)
  await pair.restartOneByOne(`${NEW},${OLD}`)
  const { kid } = await services().signingKeys.rotate()
  const newer = await services().apps.newSecret('shop')
  await new Promise(resolve => setTimeout(resolve, 200))
  traffic.appSecret.current = newer
  await runCommand(services(), 'keys reseal')
  const { secrets, storage } = services()
  const sealedBy = await storage.store.instance.sealedBy()
  assert.deepEqual([...sealedBy.keys()], [secrets.fingerprint])
  await pair.restartOneByOne(NEW)
  const published = await Promise.all(
    pair.nodes.map(node => call(node!.origin, 'GET', '/.well-known/jwks.json')),
  )
  for (const { body } of published) assert.ok(body.keys.some((key: { kid: string }) => key.kid === kid))

  traffic.stop()
  await running
  assert.deepEqual(traffic.failures, [])
  for (const [name, count] of Object.entries(traffic.counts)) assert.ok(count > 3, `${name}: ${count}`)
})
