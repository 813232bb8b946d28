import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { startNodeProcess } from '../support/node-processes.ts'
import {
  createKey,
  createPrintedLinks,
  exchange,
  freshPostgres,
  type PrintedLinks,
  revokeKey,
  sendLink,
  signIn,
  startNode,
  verifyLink,
} from '../support/nodes.ts'
import { withClient } from '../support/postgres.ts'

const WORKERS = 8

/** `npm run test:one-port`: the two nodes are processes on one port, and the kernel decides which gets a connection. */
const SHARES_PORT = process.env.TEST_ONE_PORT === '1'

/** Two nodes on one new database. */
export async function openPair(t: TestContext, settings: Record<string, string> = {}) {
  const url = await freshPostgres(t)
  const links = createPrintedLinks()
  const origins = await startPair(t, { KEYWAY_DATABASE_URL: url, ...settings }, links)
  const [a, b] = origins.map(origin => ({ origin })) as [{ origin: string }, { origin: string }]
  return { url, links, a, b, origins }
}

/** Starts two nodes. Returns their origins, of which the first has the port in the settings. */
export async function startPair(
  t: TestContext,
  settings: Record<string, string>,
  links: PrintedLinks,
): Promise<readonly [string, string]> {
  if (SHARES_PORT) {
    const { origin } = await startNodeProcess(t, { ...settings, KEYWAY_PROCESSES: '2' }, links)
    return [origin, origin]
  }
  const { KEYWAY_PORT: _, ...otherSettings } = settings
  const a = await startNode(t, settings, links)
  const b = await startNode(t, otherSettings, links)
  return [a.origin, b.origin]
}

/**
 * In each round eight workers exchange one key over two nodes, each in a loop, and the key is revoked after the first
 * success. Each worker's last exchange starts after the revocation was answered, and must fail.
 */
export async function raceRevocations(
  origins: readonly [string, string],
  links: PrintedLinks,
  rounds: number,
): Promise<void> {
  const session = await signIn(origins[0], links, 'revoking@example.com')
  for (let round = 0; round < rounds; round++) {
    const { id, key } = (await createKey(origins[round % 2]!, session.access_token)).body
    const firstSuccess = Promise.withResolvers<void>()
    let isRevocationAnswered = false
    const work = async (n: number): Promise<void> => {
      const startsAfterAnswer = isRevocationAnswered
      const { status } = await exchange(origins[n % 2]!, key)
      if (startsAfterAnswer) return assert.equal(status, 401, `round ${round}`)
      if (status === 200) firstSuccess.resolve()
      return work(n)
    }
    const allWork = Promise.all(Array.from({ length: WORKERS }, (_, n) => work(n)))
    await Promise.race([firstSuccess.promise, allWork])
    assert.equal((await revokeKey(origins[round % 2]!, session.access_token, id)).status, 200)
    isRevocationAnswered = true
    await allWork
  }
}

/** Sends ten requests at once over two nodes, of which three may pass (`KEYWAY_MAGIC_LINK_LIMITS`). */
export async function raceLimits(origins: readonly [string, string], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => sendLink(origins[n % 2]!, `limit-${round}@example.com`)),
    )
    const statuses = answers.map(answer => answer.status).sort()
    assert.deepEqual(statuses, [200, 200, 200, 429, 429, 429, 429, 429, 429, 429], `round ${round}`)
  }
}

/** Uses five links of one new address at once over two nodes. */
export async function raceSignUps(
  { url, origins, links }: { url: string; origins: readonly [string, string]; links: PrintedLinks },
  rounds: number,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const email = `first-${round}@example.com`
    await Promise.all(origins.flatMap(origin => [1, 2].map(() => sendLink(origin, email))))
    await sendLink(origins[0], email)
    const tokens = await Promise.all(Array.from({ length: 5 }, () => links.next(email)))
    const answers = await Promise.all(tokens.map((token, n) => verifyLink(origins[n % 2]!, email, token)))
    const statuses = answers.map(answer => answer.status).sort()
    assert.deepEqual(statuses, [200, 410, 410, 410, 410], `round ${round}`)
  }
  assert.deepEqual(await countEverything(url), {
    users: rounds,
    credits: rounds,
    subscriptions: rounds,
    authorizations: 2 * rounds,
    welcomes: rounds,
    cents: rounds * 200,
  })
}

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
