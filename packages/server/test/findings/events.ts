import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { createClient } from '@redis/client'
import pg from 'pg'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/patience.ts'
import { withClient } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { temporaryFolder } from '../support/serve.ts'
import {
  type Agent,
  type CleanUps,
  connectAgent,
  expectEqual,
  expectTrue,
  freshSettings,
  probe,
  startWith,
  type Target,
} from './checkout.ts'

const POSTGRES_ONLY = ['postgres'] as const
const CARRIERS = ['PostgreSQL', 'Redis'] as const
const MESSAGE_TEXT = 'a secret between two agents'

/** The channel of sealed events, and that of the first version's events. */
const CHANNELS = ['keyway_sealed', 'keyway'] as const

/** An attacker who may listen and publish where nodes exchange events (PostgreSQL or Redis), but has no secret. */
interface Attacker {
  received: string[]
  publish(payload: string): Promise<unknown>
}

for (const carrier of CARRIERS) {
  probe('3', `a listener on ${carrier} finds no message text`, POSTGRES_ONLY, async (_, t) => {
    const { firstNode, agent, attacker } = await openTwoNodes(t, carrier)
    const data = MESSAGE_TEXT
    const path = `/v1/agents/${agent.connectionId}/messages`
    await firstNode.call('POST', path, { token: agent.accessToken, body: { data } })
    await until('the message', () => agent.frames.some(frame => frame.data === MESSAGE_TEXT))
    await wait(500)
    expectEqual(
      false,
      attacker.received.some(each => each.includes(MESSAGE_TEXT)),
      `the text is in what ${carrier} carries`,
    )
  })

  probe('3', `forged relay frames on ${carrier} reach no agent`, POSTGRES_ONLY, async (_, t) => {
    const { agent, attacker } = await openTwoNodes(t, carrier)
    const order = {
      op: 'deliver',
      userId: JSON.parse(atob(agent.accessToken.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/'))).sub,
      to: 'all',
      frame: JSON.stringify({ type: 'message', id: '1', from: 'api', from_key_id: null, data: 'forged' }),
    }
    await attacker.publish(
      JSON.stringify({
        type: 'hub.relay',
        to: '*',
        payload: JSON.stringify({ kind: 'order', from: uuid7(), question: 1, order }),
      }),
    )
    await wait(1500)
    expectEqual(
      [],
      agent.frames.map(({ data }) => data),
      'messages that no agent sent',
    )
  })
}

probe('3', 'malformed notifications end no node', POSTGRES_ONLY, async (_, t) => {
  const { firstNode, secondNode, attacker } = await openTwoNodes(t, 'PostgreSQL')
  for (const payload of ['{', 'null', '1', '"x"', '{"type":"hub.relay"}', '{"type":"hub.relay","payload":1}'])
    await attacker.publish(payload)
  const anyExit = Promise.race([firstNode.exited, secondNode.exited])
  expectEqual('alive', await Promise.race([anyExit, wait(2000, 'alive', { ref: false })]), 'the nodes')
})

probe('13', 'a node receives events over Redis as soon as it is ready', POSTGRES_ONLY, async (_, t) => {
  const { secondNode } = await openTwoNodes(t, 'Redis')
  const isListening = async () => {
    const { checks } = (await secondNode.call('GET', '/readyz')).body
    return checks.find(({ name }: { name: string }) => name === 'events').ok
  }
  for (let attempt = 0; attempt < 10 && !(await isListening()); attempt++) await wait(1000)
  expectTrue(await isListening(), 'it receives no events for ten seconds')
})

probe(
  '16',
  'five accounts that flood beside a dead node delay no other message',
  POSTGRES_ONLY,
  async (_, t) => {
    const { firstNode, agent } = await openTwoNodes(t, 'PostgreSQL')
    const suspendedNode = await startNode(firstNode.settings, t)
    const floodingAgents: Agent[] = []
    for (let n = 0; n < 5; n++) {
      const token = await firstNode.signIn(`eve${n}@example.com`)
      const { key } = await firstNode.createKey(token)
      for (let each = 0; each < 6; each++) floodingAgents.push(await connectAgent(firstNode, token, key))
    }
    process.kill(suspendedNode.pid, 'SIGSTOP')
    const frame = JSON.stringify({ type: 'send', id: 'f', to: uuid7(), data: 1 })
    for (let n = 0; n < 190; n++) for (const { socket } of floodingAgents) socket.send(frame)
    await wait(200)
    const path = `/v1/agents/${agent.connectionId}/messages`
    const { body } = await firstNode.call('POST', path, { token: agent.accessToken, body: { data: 1 } })
    process.kill(suspendedNode.pid, 'SIGCONT')
    expectEqual(1, body.delivered, 'deliveries of the message')
  },
)

/** Two nodes, an agent on the second, and an attacker on PostgreSQL or Redis, which carries the events of the nodes. */
async function openTwoNodes(t: CleanUps, carrier: (typeof CARRIERS)[number]) {
  const settings = await freshSettings('postgres', t)
  let listen: (t: CleanUps) => Promise<Attacker> = scope => tapPostgres(scope, settings.KEYWAY_DATABASE_URL!)
  if (carrier === 'Redis') {
    const redis = await startRedis()
    t.after(() => redis.kill())
    settings.KEYWAY_EVENTS_URL = redis.url
    listen = scope => tapRedis(scope, redis.url)
  }
  settings.KEYWAY_PUBLIC_URL = 'http://localhost:9'
  const firstNode = await startNode(settings, t)
  const token = await firstNode.signIn('ada@example.com')
  const { key } = await firstNode.createKey(token)
  const attacker = await listen(t)
  const secondNode = await startNode(settings, t)
  const agent = await connectAgent(secondNode, token, key)
  return { firstNode, secondNode, agent, attacker }
}

async function startNode(settings: Record<string, string>, t: CleanUps): Promise<Target> {
  const { path, remove } = temporaryFolder()
  t.after(remove)
  const { KEYWAY_JOURNAL_DIR: _, ...shared } = settings
  return startWith({ ...shared, KEYWAY_DATA_DIR: path, KEYWAY_PORT: String(await freePort()) }, t)
}

/** Connects with a role that owns nothing. */
async function tapPostgres(t: CleanUps, url: string): Promise<Attacker> {
  const role = `stranger_${randomBytes(4).toString('hex')}`
  await withClient(url, owner => owner.query(`create role ${role} login`))
  const client = new pg.Client({ connectionString: Object.assign(new URL(url), { username: role }).href })
  client.on('error', () => {}) // The database is dropped before the test ends, which breaks the connection.
  await client.connect()
  t.after(() => client.end().catch(() => {}))
  const received: string[] = []
  client.on('notification', ({ payload = '' }) => received.push(payload))
  for (const channel of CHANNELS) await client.query(`listen ${channel}`)
  return {
    received,
    async publish(text) {
      for (const channel of CHANNELS)
        for (const payload of [text, `${randomUUID()}:0:1:${text}`])
          await client.query('select pg_notify($1, $2)', [channel, payload])
    },
  }
}

async function tapRedis(t: CleanUps, url: string): Promise<Attacker> {
  const publisher = createClient({ url }).on('error', () => {})
  const subscriber = createClient({ url }).on('error', () => {})
  await Promise.all([publisher.connect(), subscriber.connect()])
  t.after(() => [publisher, subscriber].forEach(client => void client.destroy()))
  const received: string[] = []
  await subscriber.pSubscribe('*', text => void received.push(text))
  return {
    received,
    async publish(text) {
      for (const channel of CHANNELS) await publisher.publish(channel, text)
    },
  }
}

function uuid7(): string {
  const hex = Date.now().toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`
}
