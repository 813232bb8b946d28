import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createLog } from '../../src/log.ts'
import { createStorage } from '../../src/storage/database.ts'
import { postgresConfig } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { type NodeProcess, startNodeProcess } from '../support/node-processes.ts'
import { call, createPrintedLinks, freshPostgres, signIn } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { Random } from '../support/random.ts'

const ADMIN = 'admin@example.com'
/** The only private address that the settings let the service call. */
const ALLOWED_ADDRESS = '127.0.0.1'
/** Another loopback address, on which a server counts calls that must never arrive. */
const FORBIDDEN_ADDRESS = '127.0.0.2'
const WORKERS = 12
/** The pause between attempts, so that a restarting node is not called in a tight loop. */
const RETRY_MS = 50
const MAX_FAILURES_OF_AN_EVENT = 2

interface CrashOptions {
  /** Number of renamings of keys, each of which causes one event. */
  acts: number
  subjects: number
  nodes: number
  kills: number
  /** How long deliveries may take after the last act, in milliseconds on an idle machine. */
  patience: number
}

/**
 * Changes keys on several nodes as processes, some of which are killed with SIGKILL and restarted, and delivers the
 * events to an endpoint that fails at random. Asserts that every event of an answered act is accepted at least once,
 * that the events of each subject first arrive in order and without gaps, and that no call reaches a forbidden address:
 * neither by a redirect nor by an endpoint that was created under other settings.
 */
export async function deliverThroughCrashes(t: TestContext, options: CrashOptions): Promise<void> {
  const random = new Random(1)
  const forbiddenServer = await openForbidden(t)
  const endpoint = await openFailingEndpoint(t, random, forbiddenServer.url)
  const databaseUrl = await freshPostgres(t)
  const links = createPrintedLinks()
  const settings = {
    KEYWAY_DATABASE_URL: databaseUrl,
    KEYWAY_ADMIN_EMAILS: ADMIN,
    KEYWAY_WEBHOOK_PRIVATE_NETWORKS: `${ALLOWED_ADDRESS}/32`,
  }
  const ports = await Promise.all(Array.from({ length: options.nodes }, () => freePort()))
  const start = (index: number) =>
    startNodeProcess(t, { ...settings, KEYWAY_PORT: String(ports[index]) }, links)
  const nodes: NodeProcess[] = []
  for (const index of ports.keys()) nodes.push(await start(index))
  const { access_token: token } = await signIn(nodes[0]!.origin, links, ADMIN)
  const keys: string[] = []
  for (let n = 0; n < options.subjects; n++) keys.push(await createKey())

  await createWebhook(endpoint.url)
  const movedWebhook = await createWebhook(`${endpoint.url}-other`)
  await moveToForbidden(movedWebhook)
  // Nodes cache the endpoints for two seconds. Once an event of each node was accepted, all of them know the new
  // endpoints.
  for (const { origin } of nodes) {
    const probe = await createKey()
    await until('an event of each node', async () => {
      await call(origin, 'PATCH', `/v1/api-keys/${probe}`, { token, body: { name: 'probe' } })
      return endpoint.acceptedSequences.has(probe)
    })
  }

  const actCounts = new Map(keys.map(id => [id, { answered: 0, unknown: 0 }]))
  let [begunActs, kills] = [0, 0]
  const pendingRestarts: Promise<void>[] = []
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)))
  await Promise.all(pendingRestarts)
  const restartedAt = performance.now()
  const answeredActs = () => [...actCounts.values()].reduce((sum, { answered }) => sum + answered, 0)
  await until(`${answeredActs()} events`, isComplete, options.patience)
  const deliveredAt = performance.now()

  for (const [id, { answered, unknown }] of actCounts) {
    const sequences = endpoint.acceptedSequences.get(id) ?? []
    const distinctSequences = [...new Set(sequences)]
    assert.deepEqual(
      distinctSequences,
      Array.from(distinctSequences, (_, index) => index + 1),
      `the order of ${id}`,
    )
    assert.ok(
      distinctSequences.length >= answered && distinctSequences.length <= answered + unknown,
      `${id}: ${distinctSequences.length} of ${answered}`,
    )
  }
  assert.deepEqual(forbiddenServer.calls(), 0)
  t.diagnostic(
    `${begunActs} acts in ${seconds(restartedAt - startedAt)} s with ${kills} kills; all delivered ${seconds(deliveredAt - restartedAt)} s later, ` +
      `${endpoint.counts.calls} calls, ${endpoint.counts.accepted} accepted, of which ${countRepeatedEvents()} more than once`,
  )
  await Promise.all(nodes.map(node => node.served.end('SIGTERM')))

  async function createKey(): Promise<string> {
    return (await call(nodes[0]!.origin, 'POST', '/v1/api-keys', { token, body: {} })).body.id
  }

  async function createWebhook(url: string): Promise<string> {
    const body = { url, events: ['api_key.updated'] }
    const creationAnswer = await call(nodes[0]!.origin, 'POST', '/v1/admin/webhooks', { token, body })
    assert.equal(creationAnswer.status, 201, JSON.stringify(creationAnswer.body))
    return creationAnswer.body.id
  }

  /** Gives an endpoint a forbidden address, as if it had been created while that was allowed. */
  async function moveToForbidden(id: string): Promise<void> {
    const storage = await createStorage(postgresConfig(databaseUrl), createLog('silent'))
    await storage.store.webhooks.update(id, { url: forbiddenServer.url })
    await storage.close()
  }

  async function work(worker: number): Promise<void> {
    while (begunActs < options.acts) {
      const number = begunActs++
      if (number > 0 && number % Math.ceil(options.acts / (options.kills + 1)) === 0)
        pendingRestarts.push(kill(kills++))
      const id = keys[number % keys.length]!
      // The act is repeated on the next node until its success is answered.
      for (
        let index = number + worker;
        !(await renameKey(id, index % nodes.length, `act ${number}`));
        index++
      );
    }
  }

  /** Renames a key; returns whether a success was answered. If not, the key may nevertheless have been renamed. */
  async function renameKey(id: string, index: number, name: string): Promise<boolean> {
    const counts = actCounts.get(id)!
    try {
      const { status } = await call(`http://127.0.0.1:${ports[index]}`, 'PATCH', `/v1/api-keys/${id}`, {
        token,
        body: { name },
      })
      if (status === 200) counts.answered++
      else counts.unknown++
      return status === 200
    } catch {
      counts.unknown++
      await pause(RETRY_MS)
      return false
    }
  }

  async function kill(number: number): Promise<void> {
    const index = number % nodes.length
    await nodes[index]!.served.end('SIGKILL')
    nodes[index] = await start(index)
  }

  function isComplete(): boolean {
    return [...actCounts].every(
      ([id, { answered }]) => new Set(endpoint.acceptedSequences.get(id)).size >= answered,
    )
  }

  function countRepeatedEvents(): number {
    const allSequences = [...endpoint.acceptedSequences.values()]
    return allSequences.reduce((sum, sequences) => sum + sequences.length - new Set(sequences).size, 0)
  }
}

/**
 * Answers a quarter of the calls with an error, a redirect or nothing, but accepts an event after
 * `MAX_FAILURES_OF_AN_EVENT` such answers: the delay before the next attempt doubles each time, so that without this
 * limit a few events would take arbitrarily long.
 */
async function openFailingEndpoint(t: TestContext, random: Random, redirectTarget: string) {
  /** Sequence numbers of events by key id, in the order in which the endpoint accepted them. */
  const acceptedSequences = new Map<string, number[]>()
  const failures = new Map<string, number>()
  const counts = { calls: 0, accepted: 0 }
  const url = await listen(t, ALLOWED_ADDRESS, (raw, response) => {
    counts.calls++
    const { data, sequence } = JSON.parse(raw)
    const event = `${data.key_id} ${sequence}`
    const failureCount = failures.get(event) ?? 0
    const choice = random.below(40)
    if (choice < 10 && failureCount < MAX_FAILURES_OF_AN_EVENT) {
      failures.set(event, failureCount + 1)
      if (choice < 6) response.writeHead(500).end('no')
      else if (choice < 8) response.writeHead(307, { location: redirectTarget }).end()
      else response.destroy()
      return
    }
    counts.accepted++
    acceptedSequences.set(data.key_id, [...(acceptedSequences.get(data.key_id) ?? []), sequence])
    response.writeHead(204).end()
  })
  return { url, acceptedSequences, counts }
}

async function openForbidden(t: TestContext) {
  let calls = 0
  const url = await listen(t, FORBIDDEN_ADDRESS, (_raw, response) => {
    calls++
    response.end()
  })
  return { url, calls: () => calls }
}

async function listen(
  t: TestContext,
  host: string,
  answer: (raw: string, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    answer(Buffer.concat(chunks).toString(), response)
  })
  server.listen(0, host)
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://${host}:${(server.address() as AddressInfo).port}/hook`
}

function seconds(ms: number): number {
  return Math.round(ms / 1000)
}
