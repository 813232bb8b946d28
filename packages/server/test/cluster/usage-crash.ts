import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import type { TestContext } from 'node:test'
import { createLog } from '../../src/log.ts'
import { createStorage } from '../../src/storage/database.ts'
import { COUNTERS, type UsageCounts } from '../../src/usage/usage.ts'
import { keyway, outputOf } from '../support/command-line.ts'
import { postgresConfig } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { basicAuthorization } from '../support/http.ts'
import { type NodeProcess, startNodeProcess } from '../support/node-processes.ts'
import { call, createPrintedLinks, freshPostgres, NODE_SETTINGS, signIn } from '../support/nodes.ts'

/**
 * How long each node's answers are remembered, at least. Those shortly before a kill are marked (`Tally.atRisk`) only
 * once the node has restarted, which takes less time than this, even on a busy machine.
 */
const REMEMBERED_MS = 120_000
const WORKERS_PER_NODE = 16
/** Later than any bucket of usage. */
const DISTANT_FUTURE = 1e15

interface Key {
  id: string
  key: string
}

/** An operation: its request, and the counts for the key that follow from its answer. */
interface Operation {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body?: string
  status: number
  counts: readonly string[]
}

/**
 * Runs mixed operations on two nodes as processes, each of which is killed with SIGKILL and restarted. Asserts for each
 * counter of each key that the stored count is at most the operations that were answered, or pending at a kill, and
 * that it lacks only operations that a killed node answered in its last `lostMs`.
 */
export async function crashWhileCounting(
  t: TestContext,
  load: { operations: number; keys: number; lostMs: number },
): Promise<void> {
  const url = await freshPostgres(t)
  const settings = { KEYWAY_DATABASE_URL: url }
  const links = createPrintedLinks()
  const ports = [String(await freePort()), String(await freePort())]
  const start = (index: number) => startNodeProcess(t, { ...settings, KEYWAY_PORT: ports[index]! }, links)
  const nodes: NodeProcess[] = [await start(0), await start(1)]
  const secret = (await outputOf(keyway({ ...NODE_SETTINGS, ...settings }, 'apps', 'secret', 'hub'))).trim()
  const { user, access_token } = await signIn(nodes[0]!.origin, links, 'counted@example.com')
  const keys: Key[] = []
  for (let n = 0; n < load.keys; n++) {
    const body = { scopes: ['agent:connect', 'keys:read'] }
    keys.push((await call(nodes[0]!.origin, 'POST', '/v1/api-keys', { token: access_token, body })).body)
  }
  // The creations of these keys are API calls of the person and of no key, so `answers` does not count them.
  const answers = new Answers()
  const pendingCrashes: Promise<void>[] = []
  let begunCount = 0
  const startedAt = performance.now()
  await Promise.all(nodes.flatMap((_, index) => Array.from({ length: WORKERS_PER_NODE }, () => work(index))))
  t.diagnostic(`${begunCount} operations in ${Math.round((performance.now() - startedAt) / 1000)} s`)
  await Promise.all(pendingCrashes)
  await Promise.all(nodes.map(node => node.served.end('SIGTERM')))
  await compareWithUsage()

  async function work(index: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (begunCount < load.operations) {
      const number = begunCount++
      if (number === Math.floor(load.operations / 3)) pendingCrashes.push(crash(1))
      if (number === Math.floor((load.operations * 2) / 3)) pendingCrashes.push(crash(0))
      const key = keys[number % keys.length]!
      const operation = operationOf(number, key)
      const outcome = await retryUntilSent(`http://127.0.0.1:${ports[index]}`, operation, agent)
      // A request that an overloaded node answered with 503 may have been counted or not.
      const isUnknown = outcome === 'cut' || outcome === 503
      answers.add(index, key.id, operation.counts, isUnknown ? 'unknown' : 'answered')
      if (isUnknown || outcome === operation.status) continue
      begunCount = load.operations
      assert.fail(`${operation.path} was answered with ${outcome}`)
    }
    agent.destroy()
  }

  /** Kills and restarts a node, whose usage of the last `load.lostMs` milliseconds may be lost. */
  async function crash(index: number): Promise<void> {
    const lossStart = performance.now() - load.lostMs
    await nodes[index]!.served.end('SIGKILL')
    nodes[index] = await start(index)
    answers.markLostSince(index, lossStart)
  }

  function operationOf(number: number, { id, key }: Key): Operation {
    const bearer = { Authorization: `Bearer ${key}` }
    const jsonHeaders = { 'Content-Type': 'application/json' }
    switch (Math.floor(number / keys.length) % 4) {
      case 0: {
        const body = JSON.stringify({ api_key: key })
        return {
          method: 'POST',
          path: '/auth/agent-token',
          headers: jsonHeaders,
          body,
          status: 200,
          counts: ['exchanges'],
        }
      }
      case 1:
        return {
          method: 'GET',
          path: `/v1/api-keys/${id}`,
          headers: bearer,
          status: 200,
          counts: ['apiCalls'],
        }
      case 2:
        return { method: 'GET', path: '/v1/me', headers: bearer, status: 403, counts: ['insufficient_scope'] }
      default: {
        const body = JSON.stringify({ token: key })
        const headers = { ...jsonHeaders, ...basicAuthorization('hub', secret) }
        return {
          method: 'POST',
          path: '/auth/introspect',
          headers,
          body,
          status: 200,
          counts: ['introspections'],
        }
      }
    }
  }

  async function compareWithUsage(): Promise<void> {
    const storage = await createStorage(postgresConfig(url), createLog('silent'))
    t.after(() => storage.close())
    const sums = { answered: 0, stored: 0, lost: 0 }
    const totals = new Map<string, number>()
    for (const { id } of keys) {
      for (const unit of ['hour', 'day'] as const) {
        const rows = await storage.store.usage.read({ userId: user.id, keyId: id }, unit, 0, DISTANT_FUTURE)
        for (const name of ['exchanges', 'apiCalls', 'introspections', 'insufficient_scope']) {
          const storedCount = rows.reduce((sum, row) => sum + countOf(row, name), 0)
          const { answered, unknown, atRisk } = answers.tallyOf(id, name)
          assert.ok(
            storedCount <= answered + unknown,
            `${name} of a key: ${storedCount} stored, ${answered} answered`,
          )
          assert.ok(
            storedCount >= answered - atRisk,
            `${name} of a key: ${storedCount} stored, ${answered} answered, ${atRisk} may be lost`,
          )
          if (unit === 'day') continue
          sums.answered += answered
          sums.stored += storedCount
          sums.lost += Math.max(0, answered - storedCount)
          totals.set(name, (totals.get(name) ?? 0) + storedCount)
        }
      }
    }
    const personRows = await storage.store.usage.read(
      { userId: user.id, keyId: null },
      'hour',
      0,
      DISTANT_FUTURE,
    )
    for (const [name, stored] of totals) {
      const personTotal = personRows.reduce((sum, row) => sum + countOf(row, name), 0)
      // The key creations were API calls of the person without a key; how many of them a crash lost is unknown.
      if (name === 'apiCalls') assert.ok(personTotal >= stored && personTotal <= stored + keys.length)
      else assert.equal(personTotal, stored, `${name} of the person`)
    }
    t.diagnostic(JSON.stringify(sums))
    assert.ok(sums.lost < sums.answered, 'something was stored')
  }
}

function countOf(row: UsageCounts, name: string): number {
  const counter = COUNTERS.find(each => each === name)
  return counter ? row[counter] : (row.refused[name] ?? 0)
}

/** Repeats a request until the node has accepted its connection; returns the status, or `cut` without a response. */
async function retryUntilSent(origin: string, operation: Operation, agent: Agent): Promise<number | 'cut'> {
  for (;;) {
    const outcome = await sendOnce(origin, operation, agent)
    if (outcome !== 'refused') return outcome
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

/**
 * Sends a request. Returns the status of the response, `refused` if the node accepted no connection, so nothing was
 * sent, or `cut` if the connection broke without a response.
 */
function sendOnce(
  origin: string,
  { method, path, headers, body }: Operation,
  agent: Agent,
): Promise<number | 'refused' | 'cut'> {
  return new Promise(resolve => {
    const outgoing = request(origin + path, {
      method,
      agent,
      headers: { ...headers, ...(body && { 'Content-Length': Buffer.byteLength(body) }) },
    })
    outgoing.on('response', response => {
      response.resume()
      // A truncated response counts as a response.
      response.on('close', () => resolve(response.statusCode!))
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'cut'),
    )
    outgoing.end(body)
  })
}

interface Tally {
  answered: number
  unknown: number
  /** The operations that a node answered so shortly before it was killed that their counts may be lost. */
  atRisk: number
}

/** Counts the operations by key, counter and whether their outcome is known. Keeps the latest answers of each node. */
class Answers {
  readonly #tallies = new Map<string, Tally>()
  readonly #recent: { name: string; at: number }[][] = [[], []]

  add(node: number, keyId: string, counts: readonly string[], kind: 'answered' | 'unknown'): void {
    const at = performance.now()
    for (const count of counts) {
      const name = `${keyId} ${count}`
      this.#tally(name)[kind]++
      if (kind === 'answered') this.#recent[node]!.push({ name, at })
    }
    const recentAnswers = this.#recent[node]!
    if (recentAnswers.length > 1000 && recentAnswers[recentAnswers.length >> 1]!.at < at - REMEMBERED_MS)
      this.#recent[node] = recentAnswers.slice(recentAnswers.length >> 1)
  }

  /** Marks a killed node's answers from `since` on: their counts may be lost. */
  markLostSince(node: number, since: number): void {
    for (const { name, at } of this.#recent[node]!) if (at >= since) this.#tally(name).atRisk++
    this.#recent[node] = []
  }

  tallyOf(keyId: string, count: string): Tally {
    return this.#tally(`${keyId} ${count}`)
  }

  #tally(name: string): Tally {
    let tally = this.#tallies.get(name)
    if (!tally) {
      tally = { answered: 0, unknown: 0, atRisk: 0 }
      this.#tallies.set(name, tally)
    }
    return tally
  }
}
