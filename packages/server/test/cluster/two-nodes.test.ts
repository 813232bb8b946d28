import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SWEEP_MS } from '../../src/hub/revocations.ts'
import { postgresMissing } from '../support/engines.ts'
import {
  connectHub,
  createKey,
  exchange,
  quantile,
  refresh,
  revokeKey,
  sendLink,
  signIn,
} from '../support/nodes.ts'
import { patienceMs } from '../support/patience.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { openPair, raceLimits, raceRevocations, raceSignUps } from './races.ts'

describe('two nodes on one PostgreSQL', { skip: postgresMissing() }, () => {
  test('an exchange that starts after a revocation was answered fails on both nodes, in 60 races of eight', async t => {
    const { origins, links } = await openPair(t)
    await raceRevocations(origins, links, 60)
  })

  test('revoking a key on one node closes its connections on the other: p99 of 100 under a second', async t => {
    const { a, b, links } = await openPair(t)
    const session = await signIn(a.origin, links, 'closing@example.com')
    const closedAfterMs: number[] = []
    for (let n = 0; n < 100; n++) {
      const { id, key } = (await createKey(a.origin, session.access_token)).body
      const connection = await connectHub(b.origin, (await exchange(b.origin, key)).body.token)
      await revokeKey(a.origin, session.access_token, id)
      const answeredAt = performance.now()
      const { code, at } = await connection.closed
      assert.equal(code, 4410)
      closedAfterMs.push(at - answeredAt)
    }
    const [p50, p99] = [quantile(closedAfterMs, 0.5), quantile(closedAfterMs, 0.99)]
    t.diagnostic(`closed after: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`)
    assert.ok(p99 < patienceMs(SWEEP_MS), `p99 is ${p99} ms`)
    assert.ok(p50 < patienceMs(SWEEP_MS / 4), `p50 is ${p50} ms: closed by the sweep`)
  })

  test('a limit is exact over two nodes, in 30 races of ten', async t => {
    const { origins } = await openPair(t, { KEYWAY_MAGIC_LINK_LIMITS: '3/minute' })
    await raceLimits(origins, 30)
  })

  test('of concurrent refreshes on two nodes one succeeds, and retries with one key get one successor', async t => {
    const { a, origins, links } = await openPair(t)
    for (let round = 0; round < 15; round++) {
      const session = await signIn(a.origin, links, `refresh-${round}@example.com`)
      const idempotencyKey = `honest-retry-of-round-${round}`
      const retryAnswers = await Promise.all(
        Array.from({ length: 8 }, (_, n) => refresh(origins[n % 2]!, session.refresh_token, idempotencyKey)),
      )
      const successors = new Set(retryAnswers.map(answer => answer.body.refresh_token))
      assert.deepEqual([retryAnswers.every(answer => answer.status === 200), successors.size], [true, 1])
      const [next] = successors
      const racedRefreshes = await Promise.all(
        Array.from({ length: 8 }, (_, n) => refresh(origins[n % 2]!, next)),
      )
      assert.equal(racedRefreshes.filter(answer => answer.status === 200).length, 1)
    }
  })

  test('five links of a new address used at once on two nodes create one account, each part of it once', async t => {
    await raceSignUps(await openPair(t), 20)
  })

  test('200 mails are sent once each while both nodes deliver', async t => {
    const smtp = await startSmtpServer(t, { startTls: false })
    const { origins } = await openPair(t, {
      KEYWAY_MAIL_URL: `smtp://127.0.0.1:${smtp.port}`,
      KEYWAY_SUPPORT_EMAIL: 'support@example.com',
    })
    await Promise.all(
      Array.from({ length: 200 }, (_, n) => sendLink(origins[n % 2]!, `mail-${n}@example.com`)),
    )
    await smtp.received(200)
    const ids = new Set(smtp.mails.map(mail => mail.headers.get('message-id')![0]))
    assert.deepEqual([smtp.mails.length, ids.size], [200, 200])
  })
})
