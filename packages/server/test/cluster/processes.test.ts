import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { startNodeProcess } from '../support/node-processes.ts'
import {
  call,
  connectHub,
  createKey,
  createPrintedLinks,
  exchange,
  freshPostgres,
  signIn,
} from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { raceRevocations } from './races.ts'

describe('nodes as processes', { skip: postgresMissing() }, () => {
  test('an exchange that starts after a revocation was answered fails on both nodes', async t => {
    const url = await freshPostgres(t)
    const links = createPrintedLinks()
    const startNode = () => startNodeProcess(t, { KEYWAY_DATABASE_URL: url }, links)
    const [a, b] = await Promise.all([startNode(), startNode()])
    await raceRevocations([a.origin, b.origin], links, 30)
  })

  test('connections of a killed node are removed from the list in time, its mail is delivered, and it can be restarted', async t => {
    const url = await freshPostgres(t)
    const links = createPrintedLinks()
    const settings = { KEYWAY_DATABASE_URL: url }
    const a = await startNodeProcess(t, settings, links)
    const port = String(await freePort())
    const b = await startNodeProcess(t, { ...settings, KEYWAY_PORT: port }, links)
    const session = await signIn(a.origin, links, 'killed@example.com')
    const { key } = (await createKey(a.origin, session.access_token)).body
    const token = (await exchange(a.origin, key)).body.token
    const [agentOfA, agentOfB] = [await connectHub(a.origin, token), await connectHub(b.origin, token)]
    const listedIds = async () => {
      const { body } = await call(a.origin, 'GET', '/v1/agents', { token: session.access_token })
      return body.data.map((agent: { connection_id: string }) => agent.connection_id)
    }
    const untilListed = async (ids: string[], ms: number) => {
      const startedAt = performance.now()
      const expected = `${[...ids].sort()}`
      await until(`${expected} are listed`, async () => `${(await listedIds()).sort()}` === expected, ms)
      return performance.now() - startedAt
    }
    await untilListed([agentOfA.id, agentOfB.id], 5_000)
    // A node waits for the answer of another one for a second only, which may take longer on a busy machine.
    let attempts = 0
    await until('a message is delivered to the other node in time', async () => {
      const id = `hello ${++attempts}`
      agentOfA.send({ type: 'send', id, to: 'all', data: 'hello' })
      return (await agentOfA.next(frame => frame.type === 'sent' && frame.id === id)).delivered === 1
    })
    assert.equal((await agentOfB.next(frame => frame.type === 'message')).data, 'hello')

    await b.served.end('SIGKILL')
    const removedAfterMs = await untilListed([agentOfA.id], 15_000)
    t.diagnostic(`the killed node's connections were removed after ${Math.round(removedAfterMs)} ms`)
    agentOfA.send({ type: 'send', id: 'again', to: 'all', data: 'hello again' })
    assert.equal((await agentOfA.next(frame => frame.type === 'sent' && frame.id === 'again')).delivered, 0)

    const restartedNode = await startNodeProcess(t, { ...settings, KEYWAY_PORT: port }, links)
    t.diagnostic(`ready again after ${Math.round(restartedNode.served.readyAfter)} ms`)
    const newConnection = await connectHub(restartedNode.origin, token)
    await untilListed([agentOfA.id, newConnection.id], 5_000)
    await signIn(restartedNode.origin, links, 'mail-after-the-kill@example.com')
  })
})
