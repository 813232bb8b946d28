import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { platform } from 'node:os'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, type AgentDisconnected, type Json } from '@keyway/sdk'
import { RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { postgresMissing } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { startNodeProcess } from '../support/node-processes.ts'
import { createKey, createPrintedLinks, freshPostgres, NODE_SETTINGS, signIn } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { serve, temporaryFolder } from '../support/serve.ts'

describe('several processes on one port', { skip: postgresMissing() || skipUnlessLinux() }, () => {
  test('accept connections while one of them is killed or all are replaced, and export their metrics as one page', async t => {
    const links = createPrintedLinks()
    const settings = {
      KEYWAY_DATABASE_URL: await freshPostgres(t),
      KEYWAY_PROCESSES: '2',
      KEYWAY_PUBLIC_URL: 'http://localhost:9',
    }
    const { origin, served } = await startNodeProcess(t, settings, links)
    const session = await signIn(origin, links, 'many@example.com')
    const { key } = (await createKey(origin, session.access_token)).body
    const firstPids = childPids(served.pid)
    assert.equal(firstPids.length, 2)

    let exchangeCount = 0
    const exchangeOnce = async () => {
      assert.equal((await requestOnce(`${origin}/auth/agent-token`, { api_key: key })).status, 200)
      exchangeCount++
    }
    for (let n = 0; n < 40; n++) await exchangeOnce()
    // The page has the previous values of a process that reports late.
    await until('both processes and all exchanges are counted', async () => {
      const page = await scrape(origin)
      return (
        sampleOf(page, 'keyway_exchanges_total{outcome="issued"}') === 40 &&
        sampleOf(page, 'keyway_processes') === 2 &&
        [1, 2].every(number => sampleOf(page, `process_resident_memory_bytes{process="${number}"}`) > 0)
      )
    })

    process.kill(firstPids[0]!, 'SIGKILL')
    await until('the killed process is replaced', async () => {
      await exchangeOnce()
      const page = await scrape(origin)
      return sampleOf(page, 'keyway_processes_ended_total') === 1 && sampleOf(page, 'keyway_processes') === 2
    })
    await until(
      'every exchange is counted',
      async () =>
        sampleOf(await scrape(origin), 'keyway_exchanges_total{outcome="issued"}') === exchangeCount,
    )

    const disconnections: AgentDisconnected[] = []
    const received: Json[] = []
    const sender = await connectAgent(origin, key)
    const receiver = await connectAgent(origin, key)
    t.after(() => [sender, receiver].map(agent => agent.close()))
    receiver.on('message', ({ data }) => received.push(data))
    for (const agent of [sender, receiver]) agent.on('disconnected', event => disconnections.push(event))
    const oldPids = childPids(served.pid)
    process.kill(served.pid, 'SIGHUP')
    let sentCount = 0
    /** Messages that may have reached the other process too late: one that timed out, and later ones without receiver. */
    const lateMessages = new Set<Json>()
    let hasTimedOut = false
    const send = async (n: number) => {
      const sentAt = performance.now()
      const { delivered, held = 0 } = await sender.send('all', n)
      const isLate = performance.now() - sentAt >= RELAY_TIMEOUT_MS
      hasTimedOut ||= isLate
      if (isLate || (hasTimedOut && delivered + held === 0)) lateMessages.add(n)
    }
    const sends: Promise<void>[] = []
    await until('both processes are replaced', async () => {
      await exchangeOnce()
      sends.push(send(sentCount++))
      await wait(20)
      const pids = childPids(served.pid)
      return pids.length === 2 && !pids.some(pid => oldPids.includes(pid))
    })
    await Promise.all(sends)
    const inTimeOnly = (numbers: Json[]) => numbers.filter(n => !lateMessages.has(n))
    const expected = inTimeOnly([...Array(sentCount).keys()])
    await until('all messages have arrived', () => inTimeOnly(received).length >= expected.length)
    assert.deepEqual(inTimeOnly(received), expected)
    assert.deepEqual(disconnections, [])
    // The page has the previous values of a process that reports late.
    await until('both new processes and all exchanges are counted', async () => {
      const page = await scrape(origin)
      return (
        sampleOf(page, 'keyway_processes') === 2 &&
        sampleOf(page, 'keyway_processes_ended_total') === 3 &&
        sampleOf(page, 'keyway_exchanges_total{outcome="issued"}') > exchangeCount
      )
    })

    const lastPids = childPids(served.pid)
    assert.equal(await served.end('SIGTERM'), 0)
    assert.deepEqual(lastPids.filter(isAlive), [])
  })

  test('that cannot start end once, with the status and the message of the first process', async t => {
    const url = await freshPostgres(t)
    const takenPort = String(await freePort())
    const folder = temporaryFolder()
    t.after(folder.remove)
    const portHolder = await serve({ KEYWAY_PORT: takenPort, KEYWAY_DATA_DIR: folder.path })
    t.after(() => portHolder.end('SIGKILL'))
    const settings = {
      ...NODE_SETTINGS,
      KEYWAY_DATABASE_URL: url,
      KEYWAY_PORT: takenPort,
      KEYWAY_PROCESSES: '2',
    }
    await assert.rejects(serve(settings), ({ message }: Error) => {
      assert.match(message, /keyway serve ended with 78/)
      assert.equal(message.match(/is in use/g)?.length, 1)
      return true
    })
  })

  test('end when the process that started them is killed', async t => {
    const url = await freshPostgres(t)
    const port = String(await freePort())
    const settings = { ...NODE_SETTINGS, KEYWAY_DATABASE_URL: url, KEYWAY_PORT: port, KEYWAY_PROCESSES: '2' }
    const supervisor = await serve(settings)
    t.after(() => supervisor.end('SIGKILL'))
    const processes = childPids(supervisor.pid)
    assert.equal(processes.length, 2)
    await supervisor.end('SIGKILL')
    await until('both processes have ended', () => !processes.some(isAlive))
  })
})

function skipUnlessLinux(): string | false {
  return platform() !== 'linux' && 'the test reads /proc'
}

function childPids(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function connectAgent(url: string, apiKey: string): Promise<Agent> {
  const agent = new Agent({ url, apiKey })
  await new Promise<void>(resolve => agent.once('ready', () => resolve()))
  return agent
}

/** Sends a request over a connection of its own: a kept-alive one would break when its process ends. */
function requestOnce(url: string, body?: object): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const outgoing = request(url, {
      method: body ? 'POST' : 'GET',
      agent: false,
      ...(body ? { headers } : {}),
    })
    outgoing.on('response', answer => {
      let text = ''
      answer
        .on('data', chunk => (text += chunk))
        .on('end', () => resolve({ status: answer.statusCode!, text }))
    })
    outgoing.on('error', reject)
    outgoing.end(body && JSON.stringify(body))
  })
}

const scrape = async (origin: string) => (await requestOnce(`${origin}/metrics`)).text

function sampleOf(page: string, series: string): number {
  const line = page.split('\n').find(each => each.startsWith(`${series} `))
  return Number(line?.split(' ').at(-1))
}
