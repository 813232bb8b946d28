import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { platform } from 'node:os'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, type AgentDisconnected, type Json } from '@keyway/sdk'
import { postgresMissing } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { startNodeProcess } from '../support/node-processes.ts'
import { createKey, createPrintedLinks, freshPostgres, NODE_SETTINGS, signIn } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { serve } from '../support/serve.ts'

describe('several processes on one port', { skip: postgresMissing() ?? notLinux() }, () => {
  test('accept connections while one of them is killed or all are replaced, and export their metrics as one page', async t => {
    const links = createPrintedLinks()
    const settings = {
      KEYWAY_DATABASE_URL: await freshPostgres(t),
      KEYWAY_PROCESSES: '2',
      KEYWAY_PUBLIC_URL: 'http://localhost:9',
    }
    const { origin, served } = await startNodeProcess(t, settings, links)
    const person = await signIn(origin, links, 'many@example.com')
    const { key } = (await createKey(origin, person.access_token)).body
    const first = children(served.pid)
    assert.equal(first.length, 2)

    let exchanged = 0
    const exchangeOnce = async () => {
      assert.equal((await ask(`${origin}/auth/agent-token`, { api_key: key })).status, 200)
      exchanged++
    }
    for (let n = 0; n < 40; n++) await exchangeOnce()
    const before = await scrape(origin)
    assert.equal(figure(before, 'keyway_exchanges_total{outcome="issued"}'), 40)
    assert.equal(figure(before, 'keyway_processes'), 2)
    for (const number of [1, 2])
      assert.ok(figure(before, `process_resident_memory_bytes{process="${number}"}`) > 0)

    process.kill(first[0]!, 'SIGKILL')
    await until('the killed process is replaced', async () => {
      await exchangeOnce()
      const page = await scrape(origin)
      return figure(page, 'keyway_processes_ended_total') === 1 && figure(page, 'keyway_processes') === 2
    })
    const repaired = await scrape(origin)
    assert.equal(
      figure(repaired, 'keyway_exchanges_total{outcome="issued"}'),
      exchanged,
      'nothing is uncounted',
    )

    const gone: AgentDisconnected[] = []
    const received: Json[] = []
    const sender = await readyAgent(origin, key)
    const receiver = await readyAgent(origin, key)
    t.after(() => [sender, receiver].map(agent => agent.close()))
    receiver.on('message', ({ data }) => received.push(data))
    for (const agent of [sender, receiver]) agent.on('disconnected', event => gone.push(event))
    const old = children(served.pid)
    process.kill(served.pid, 'SIGHUP')
    let sent = 0
    const sending: Promise<unknown>[] = []
    await until('both processes are replaced', async () => {
      await exchangeOnce()
      sending.push(sender.send('all', sent++))
      await wait(20)
      const now = children(served.pid)
      return now.length === 2 && !now.some(pid => old.includes(pid))
    })
    await Promise.all(sending)
    await until('all messages have arrived', () => received.length >= sent)
    assert.deepEqual(received, [...Array(sent).keys()])
    assert.deepEqual(gone, [])
    await until(
      'both new processes are counted',
      async () => figure(await scrape(origin), 'keyway_processes') === 2,
    )
    const replaced = await scrape(origin)
    assert.equal(figure(replaced, 'keyway_processes_ended_total'), 3)
    assert.equal(figure(replaced, 'keyway_exchanges_total{outcome="issued"}') > exchanged, true)

    const last = children(served.pid)
    assert.equal(await served.end('SIGTERM'), 0)
    assert.deepEqual(last.filter(isAlive), [])
  })

  test('that cannot start end once, with the status and the message of the first one', async t => {
    const url = await freshPostgres(t)
    const taken = String(await freePort())
    const other = await serve({ KEYWAY_PORT: taken })
    t.after(() => other.end('SIGKILL'))
    const settings = { ...NODE_SETTINGS, KEYWAY_DATABASE_URL: url, KEYWAY_PORT: taken, KEYWAY_PROCESSES: '2' }
    await assert.rejects(serve(settings), ({ message }: Error) => {
      assert.match(message, /keyway serve ended with 78/)
      assert.equal(message.match(/is in use/g)?.length, 1)
      return true
    })
  })

  test('end when the one that started them is killed', async t => {
    const url = await freshPostgres(t)
    const port = String(await freePort())
    const settings = { ...NODE_SETTINGS, KEYWAY_DATABASE_URL: url, KEYWAY_PORT: port, KEYWAY_PROCESSES: '2' }
    const served = await serve(settings)
    t.after(() => served.end('SIGKILL'))
    const processes = children(served.pid)
    assert.equal(processes.length, 2)
    await served.end('SIGKILL')
    await until('they have ended', () => !processes.some(isAlive))
  })
})

function notLinux(): string | false {
  return platform() !== 'linux' && 'the test reads /proc'
}

function children(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function readyAgent(url: string, apiKey: string): Promise<Agent> {
  const agent = new Agent({ url, apiKey })
  await new Promise<void>(resolve => agent.once('ready', () => resolve()))
  return agent
}

/** Sends a request over a connection of its own, since a kept-alive one ends with its process. */
function ask(url: string, body?: object): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request(url, { method: body ? 'POST' : 'GET', agent: false, ...(body ? { headers } : {}) })
    sent.on('response', answer => {
      let text = ''
      answer
        .on('data', chunk => (text += chunk))
        .on('end', () => resolve({ status: answer.statusCode!, text }))
    })
    sent.on('error', reject)
    sent.end(body && JSON.stringify(body))
  })
}

const scrape = async (origin: string) => (await ask(`${origin}/metrics`)).text

function figure(page: string, series: string): number {
  const line = page.split('\n').find(each => each.startsWith(`${series} `))
  return Number(line?.split(' ').at(-1))
}
