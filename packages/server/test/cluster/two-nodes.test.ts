import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import {
  connectHub,
  createKey,
  createPrintedLinks,
  exchange,
  freshPostgres,
  quantile,
  refresh,
  revokeKey,
  sendLink,
  signIn,
  startNode,
  verifyLink,
} from '../support/nodes.ts'
import { withClient } from '../support/postgres.ts'
import { startSmtpServer } from '../support/smtp.ts'

async function openPair(t: TestContext, settings: Record<string, string> = {}) {
  const url = await freshPostgres(t)
  const links = createPrintedLinks()
  const shared = { KEYWAY_DATABASE_URL: url, ...settings }
  const a = await startNode(t, shared, links)
  const b = await startNode(t, shared, links)
  return { url, links, a, b, nodes: [a, b], origins: [a.origin, b.origin] }
}

describe('two nodes on one PostgreSQL', { skip: postgresMissing(), timeout: 180_000 }, () => {
  test('an exchange that starts after a revocation was answered fails on both nodes, in 300 races of eight', async t => {
    const { a, origins, links } = await openPair(t)
    const person = await signIn(a.origin, links, 'key-08@example.com')
    let succeededBefore = 0
    for (let round = 0; round < 300; round++) {
      const { id, key } = (await createKey(origins[round % 2]!, person.access_token)).body
      let answeredAt = Number.POSITIVE_INFINITY
      const tooLate: number[] = []
      const worker = async (n: number) => {
        const startedAt = performance.now()
        const { status } = await exchange(origins[n % 2]!, key)
        if (status === 200 && startedAt > answeredAt) tooLate.push(startedAt)
        if (status === 200) succeededBefore++
        if (startedAt < answeredAt) await worker(n)
      }
      const working = Array.from({ length: 8 }, (_, n) => worker(n))
      const answer = await revokeKey(a.origin, person.access_token, id)
      answeredAt = performance.now()
      assert.equal(answer.status, 200)
      await Promise.all(working)
      assert.deepEqual(tooLate, [], `round ${round}`)
    }
    assert.ok(succeededBefore > 300, `the races had exchanges before them (${succeededBefore})`)
  })

  test('revoking a key on one node closes its connections on the other: p99 of 100 under a second', async t => {
    const { a, b, links } = await openPair(t)
    const person = await signIn(a.origin, links, 'closing@example.com')
    const took: number[] = []
    for (let n = 0; n < 100; n++) {
      const { id, key } = (await createKey(a.origin, person.access_token)).body
      const connection = await connectHub(b.origin, (await exchange(b.origin, key)).body.token)
      await revokeKey(a.origin, person.access_token, id)
      const answeredAt = performance.now()
      const { code, at } = await connection.closed
      assert.equal(code, 4410)
      took.push(at - answeredAt)
    }
    const p99 = quantile(took, 0.99)
    t.diagnostic(`closed after: p50 ${quantile(took, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`)
    assert.ok(p99 < 1000, `p99 is ${p99} ms`)
  })

  test('a limit is exact over two nodes, in 100 races of ten', async t => {
    const { origins } = await openPair(t, { KEYWAY_MAGIC_LINK_LIMITS: '3/minute' })
    for (let round = 0; round < 100; round++) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, n) => sendLink(origins[n % 2]!, `limit-${round}@example.com`)),
      )
      const statuses = answers.map(answer => answer.status).sort()
      assert.deepEqual(statuses, [200, 200, 200, 429, 429, 429, 429, 429, 429, 429], `round ${round}`)
    }
  })

  test('of concurrent refreshes on two nodes one succeeds, and retries with one key get one successor', async t => {
    const { a, origins, links } = await openPair(t)
    for (let round = 0; round < 30; round++) {
      const person = await signIn(a.origin, links, `refresh-${round}@example.com`)
      const key = `honest-retry-of-round-${round}`
      const same = await Promise.all(
        Array.from({ length: 8 }, (_, n) => refresh(origins[n % 2]!, person.refresh_token, key)),
      )
      const successors = new Set(same.map(answer => answer.body.refresh_token))
      assert.deepEqual([same.every(answer => answer.status === 200), successors.size], [true, 1])
      const [next] = successors
      const raced = await Promise.all(Array.from({ length: 8 }, (_, n) => refresh(origins[n % 2]!, next)))
      assert.equal(raced.filter(answer => answer.status === 200).length, 1)
    }
  })

  test('five links of a new address used at once on two nodes create one account, each part of it once', async t => {
    const { url, origins, links } = await openPair(t)
    for (let round = 0; round < 60; round++) {
      const email = `first-${round}@example.com`
      await Promise.all(origins.flatMap(origin => [1, 2].map(() => sendLink(origin, email))))
      await sendLink(origins[0]!, email)
      const tokens = await Promise.all(Array.from({ length: 5 }, () => links.next(email)))
      const answers = await Promise.all(tokens.map((token, n) => verifyLink(origins[n % 2]!, email, token)))
      const statuses = answers.map(answer => answer.status).sort()
      assert.deepEqual(statuses, [200, 410, 410, 410, 410], `round ${round}`)
    }
    assert.deepEqual(await countEverything(url), {
      users: 60,
      credits: 60,
      subscriptions: 60,
      authorizations: 120,
      welcomes: 60,
      cents: 60 * 200,
    })
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

async function countEverything(url: string): Promise<Record<string, number>> {
  return withClient(url, async client => {
    const { rows } = await client.query(`select
      (select count(*)::int from users) as users,
      (select count(*)::int from ledger_entries where kind = 'trial_credit') as credits,
      (select count(*)::int from subscriptions) as subscriptions,
      (select count(*)::int from charge_authorizations where revoked_at is null) as authorizations,
      (select count(*)::int from messages where kind = 'welcome') as welcomes,
      (select (sum(balance) / 10000)::int from balances) as cents`)
    return rows[0]
  })
}
