import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { freePort } from '../support/free-port.ts'
import { createJourney } from '../support/journey.ts'
import { until } from '../support/patience.ts'
import { startKeyway } from './running.ts'

const scrape = async (url: string) => (await fetch(`${url}/metrics`)).text()

/** The value of one series, by its name and some of its labels. */
function metricValue(text: string, name: string, ...labels: string[]): number {
  const line = text
    .split('\n')
    .find(each => each.startsWith(name) && labels.every(label => each.includes(label)))
  return Number(line?.split(' ').at(-1))
}

test('metrics include requests by route and status, exchanges by outcome, mail, hub, events, database and process', async t => {
  const { url } = await startKeyway(t)
  const journey = createJourney(url)
  await journey.sendLink('ada@example.com')
  const session = await journey.verify('ada@example.com', await journey.readToken('ada@example.com'))
  const { id, key } = await journey.createKey(session.access_token, 'one')
  const socket = await journey.connect(await journey.exchange(key))
  const metricsBefore = await scrape(url)
  assert.equal(metricValue(metricsBefore, 'keyway_hub_connections'), 1)
  const closed = new Promise(resolve => socket.once('close', resolve))
  await journey.revoke(session.access_token, id)
  await closed
  await assert.rejects(journey.exchange(key))
  await fetch(`${url}/v1/api-keys/${id}?secret=in-the-url`)
  await fetch(`${url}/no/such/${key}`)
  await fetch(`${url}/v1/no-such`)
  assert.equal((await fetch(`${url}/v1/me`, { method: 'PUT' })).status, 405)

  const text = await until('the welcome mail has left', async () => {
    const scrapedMetrics = await scrape(url)
    return metricValue(scrapedMetrics, 'keyway_mail_queued') === 0 ? scrapedMetrics : undefined
  })
  const route = 'keyway_http_request_duration_seconds_count'
  assert.equal(metricValue(text, route, 'route="/auth/agent-token"', 'status="200"'), 1)
  assert.equal(metricValue(text, route, 'route="/v1/api-keys/{key_id}"', 'method="DELETE"'), 1)
  assert.equal(metricValue(text, route, 'route="unknown"', 'status="404"'), 2)
  assert.equal(metricValue(text, 'keyway_exchanges_total', 'outcome="issued"'), 1)
  assert.equal(metricValue(text, 'keyway_exchanges_total', 'outcome="api_key_revoked"'), 1)
  assert.equal(metricValue(text, 'keyway_http_refusals_total', 'code="authentication_required"'), 1)
  assert.equal(metricValue(text, 'keyway_http_refusals_total', 'code="not_found"'), 2)
  assert.equal(metricValue(text, 'keyway_http_refusals_total', 'code="method_not_allowed"'), 1)
  assert.equal(metricValue(text, 'keyway_mail_oldest_due_seconds'), 0)
  assert.equal(metricValue(text, 'keyway_events_listening'), 1)
  assert.equal(metricValue(text, 'keyway_hub_database_fresh'), 1)
  assert.ok(metricValue(text, 'keyway_database_connections', 'state="idle"') >= 0)
  assert.ok(metricValue(text, 'nodejs_eventloop_lag_p99_seconds') >= 0)
  assert.ok(metricValue(text, 'process_resident_memory_bytes') > 0)
  assert.doesNotMatch(text, new RegExp(`${key}|in-the-url|ada@|${id}|${session.user.id}`))
})

test('metrics on the main port answer only this machine, and no request through a proxy', async t => {
  const { url } = await startKeyway(t)
  assert.equal((await fetch(`${url}/metrics`)).status, 200)
  const forwardedAnswer = await fetch(`${url}/metrics`, { headers: { 'X-Forwarded-For': '203.0.113.9' } })
  assert.equal(forwardedAnswer.status, 404)
  const serverOnAllInterfaces = await startKeyway(t, { KEYWAY_HOST: '0.0.0.0' })
  assert.equal((await fetch(`${serverOnAllInterfaces.url}/metrics`)).status, 404)
})

test('metrics are only on KEYWAY_METRICS_PORT if it is set', async t => {
  const port = await freePort()
  const { url } = await startKeyway(t, { KEYWAY_METRICS_PORT: String(port) })
  assert.equal((await fetch(`${url}/metrics`)).status, 404)
  assert.match(await scrape(`http://127.0.0.1:${port}`), /keyway_info\{version="[\d.]+"\} 1/)
  assert.equal((await fetch(`http://127.0.0.1:${port}/v1/me`)).status, 404)
})

test('an unavailable database removes only metrics that are read from it', async () => {
  const metrics = createMetrics(
    {
      mail: () => Promise.reject(new Error('away')),
      webhooks: async () => NO_EVENTS,
      hub: () => ({ connections: 3, otherNodes: 0, databaseFresh: false, draining: false }),
      events: () => ({ listening: false, lagSeconds: null }),
      database: () => null,
      clockSkewSeconds: () => 0,
    },
    createLog('silent'),
    '1.2.3',
  )
  const { body } = await metrics.render()
  assert.equal(metricValue(body, 'keyway_metric_source_failures_total', 'source="mail"'), 1)
  assert.equal(metricValue(body, 'keyway_hub_connections'), 3)
  assert.equal(metricValue(body, 'keyway_hub_database_fresh'), 0)
  assert.equal(metricValue(body, 'keyway_hub_sees_database'), 0, 'the old name, for one version more')
})

test('recording a response takes a few microseconds at most', () => {
  const idleHub = { connections: 0, otherNodes: 0, databaseFresh: true, draining: false }
  const metrics = createMetrics(
    {
      mail: async () => ({ queued: 0, oldestDueSeconds: 0 }),
      webhooks: async () => NO_EVENTS,
      hub: () => idleHub,
      events: () => ({ listening: true, lagSeconds: null }),
      database: () => null,
      clockSkewSeconds: () => 0,
    },
    createLog('silent'),
    '1.2.3',
  )
  const answer = { method: 'POST', route: '/auth/agent-token', status: 200, milliseconds: 1, code: null }
  const batches = Array.from({ length: 20 }, () => {
    const startedAt = performance.now()
    for (let call = 0; call < 2000; call++) metrics.observe(answer)
    return ((performance.now() - startedAt) * 1000) / 2000
  })
  // The fastest batch counts, since the load of the machine slows down the others.
  const fastestMicroseconds = Math.min(...batches)
  assert.ok(fastestMicroseconds < 20, `${fastestMicroseconds.toFixed(2)} µs`)
  console.log(`recording an answer: ${fastestMicroseconds.toFixed(2)} µs`)
})

/** The requests are like those of nginx with only `proxy_pass`: from this machine, with a local Host, nothing added. */
test('metrics are not public behind a proxy that adds no headers', async t => {
  const server = await startKeyway(t, PUBLIC_SETTINGS)
  assert.equal((await fetch(`http://127.0.0.1:${server.port}/metrics`)).status, 404)
})

test('metrics answer every client with KEYWAY_METRICS_TOKEN', async t => {
  const server = await startKeyway(t, { ...PUBLIC_SETTINGS, KEYWAY_METRICS_TOKEN: TOKEN })
  const url = `http://127.0.0.1:${server.port}`
  assert.equal(await statusWith(url, `Bearer ${TOKEN}`), 200)
  assert.equal(await statusWith(url, `bearer ${TOKEN}`), 200)
  for (const wrong of [`Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`, 'Bearer', TOKEN])
    assert.equal(await statusWith(url, wrong), 401, wrong)
  const answerWithoutToken = await fetch(`${url}/metrics`)
  assert.equal(answerWithoutToken.status, 401)
  assert.equal(answerWithoutToken.headers.get('www-authenticate'), 'Bearer')
  assert.equal((await fetch(`${url}/metrics?access_token=${TOKEN}`)).status, 400)
})

test('KEYWAY_METRICS_TOKEN also protects KEYWAY_METRICS_PORT', async t => {
  const port = await freePort()
  await startKeyway(t, { KEYWAY_METRICS_PORT: String(port), KEYWAY_METRICS_TOKEN: TOKEN })
  const url = `http://127.0.0.1:${port}`
  assert.equal((await fetch(`${url}/metrics`)).status, 401)
  assert.equal(await statusWith(url, `Bearer ${TOKEN}x`), 401)
  assert.equal(await statusWith(url, `Bearer ${TOKEN}`), 200)
})

test('a KEYWAY_METRICS_TOKEN that is short or not a valid header value is refused at start', () => {
  for (const text of ['short', 'has a space in the middle', 'ümlaut-ümlaut-ümlaut'])
    assert.throws(() => loadConfig({ KEYWAY_METRICS_TOKEN: text }), /KEYWAY_METRICS_TOKEN must be/)
})

test('concurrent scrapes share one rendering', async () => {
  let reads = 0
  const sources = {
    async mail() {
      reads++
      return { queued: 0, oldestDueSeconds: 0 }
    },
    webhooks: async () => NO_EVENTS,
    hub: () => ({ connections: 0, otherNodes: 0, databaseFresh: true, draining: false }),
    events: () => ({ listening: true, lagSeconds: 0 }),
    database: () => null,
    clockSkewSeconds: () => 0,
  }
  const metrics = createMetrics(sources, createLog('silent'), '0.0.0')
  await Promise.all(Array.from({ length: 50 }, () => metrics.render()))
  assert.equal(reads, 1)
  await metrics.render()
  assert.equal(reads, 2)
})

const NO_EVENTS = { waiting: 0, oldestWaitingSeconds: 0, failed: 0, disabled: 0 }
const TOKEN = 'a-token-for-prometheus-0123456789'
const PUBLIC_SETTINGS = {
  KEYWAY_PUBLIC_URL: 'https://keyway.example.com',
  KEYWAY_MAIL_URL: 'smtp://localhost:9',
  KEYWAY_SUPPORT_EMAIL: 'help@example.com',
}

async function statusWith(url: string, authorization: string): Promise<number> {
  return (await fetch(`${url}/metrics`, { headers: { authorization } })).status
}
