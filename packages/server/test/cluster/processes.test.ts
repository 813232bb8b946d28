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
    const person = await signIn(a.origin, links, 'killed@example.com')
    const { key } = (await createKey(a.origin, person.access_token)).body
    const token = (await exchange(a.origin, key)).body.token
    const [here, there] = [await connectHub(a.origin, token), await connectHub(b.origin, token)]
    const listed = async () => {
      const { body } = await call(a.origin, 'GET', '/v1/agents', { token: person.access_token })
      return body.data.map((agent: { connection_id: string }) => agent.connection_id)
    }
    const untilListed = async (ids: string[], ms: number) => {
      const started = performance.now()
      const wanted = `${[...ids].sort()}`
      await until(`${wanted} are listed`, async () => `${(await listed()).sort()}` === wanted, ms)
      return performance.now() - started
    }
    await untilListed([here.id, there.id], 5_000)
    here.send({ type: 'send', id: '1', to: 'all', data: 'hello' })
    assert.equal((await there.next(frame => frame.type === 'message')).data, 'hello')
    assert.equal((await here.next(frame => frame.type === 'sent')).delivered, 1)

    await b.served.end('SIGKILL')
    const seen = await untilListed([here.id], 15_000)
    t.diagnostic(`its connections were removed after ${Math.round(seen)} ms`)
    here.send({ type: 'send', id: '2', to: 'all', data: 'hello again' })
    assert.equal((await here.next(frame => frame.type === 'sent' && frame.id === '2')).delivered, 0)

    const again = await startNodeProcess(t, { ...settings, KEYWAY_PORT: port }, links)
    t.diagnostic(`ready again after ${Math.round(again.served.readyAfter)} ms`)
    const back = await connectHub(again.origin, token)
    await untilListed([here.id, back.id], 5_000)
    await signIn(again.origin, links, 'mail-after-the-kill@example.com')
  })
})
