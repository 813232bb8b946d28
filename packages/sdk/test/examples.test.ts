import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { WebSocket } from 'ws'
import { sharedBrowser } from '../../server/test/support/browser.ts'
import { freePort } from '../../server/test/support/free-port.ts'
import { until } from '../../server/test/support/patience.ts'
import type { KeyLimits } from '../src/protocol.ts'
import { startKeyway } from './support/keyway-server.ts'

const openBrowser = sharedBrowser()
const EXAMPLES_FOLDER = join(import.meta.dirname, '../../../examples')

interface TestContext {
  after(fn: () => Promise<void> | void): void
}

/** Starts an example as a process, and waits for its ready line. */
async function start(
  t: TestContext,
  name: string,
  env: Record<string, string>,
  ready: RegExp,
): Promise<void> {
  const child = spawn(process.execPath, [join(EXAMPLES_FOLDER, name)], { env: { ...process.env, ...env } })
  t.after(() => void child.kill('SIGKILL'))
  let output = ''
  await new Promise<void>((resolve, reject) => {
    const collect = (chunk: Buffer) => {
      output += chunk
      if (ready.test(output)) resolve()
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('exit', status => reject(new Error(`${name} ended with ${status}:\n${output}`)))
  })
}

test('the echo agent connects', async t => {
  const { url, keyway } = await startKeyway(t)
  const { key } = await keyway.apiKeys.create()
  await start(t, 'echo-agent.ts', { KEYWAY_URL: url, KEYWAY_API_KEY: key }, /connected as/)
})

test('the foreign hub accepts agents, and closes their connections when their key is revoked', async t => {
  const { url, keyway, command } = await startKeyway(t)
  const port = await freePort()
  const audience = `http://localhost:${port}`
  await command('apps', 'add', 'files', '--name', 'Files', '--audience', audience)
  const secret = (await command('apps', 'secret', 'files')).trim()
  const settings = { KEYWAY_URL: url, KEYWAY_APP_ID: 'files', KEYWAY_APP_SECRET: secret }
  await start(
    t,
    'foreign-hub.ts',
    { ...settings, KEYWAY_AUDIENCE: audience, PORT: String(port) },
    /Listening/,
  )

  const { key, id } = await keyway.apiKeys.create()
  const { token } = await keyway.exchange({ api_key: key, audience })
  const socket = await connectWhenReady(`ws://localhost:${port}`, token)
  socket.send('hello')
  assert.equal(String((await once(socket, 'message'))[0]), 'hello')
  const closed = once(socket, 'close')
  await keyway.apiKeys.revoke(id)
  assert.equal((await closed)[0], 4410)

  // Suspending a user closes their connections; once the user is activated again, new tokens are accepted.
  const otherKey = await keyway.apiKeys.create()
  const connectOther = async () => {
    const { token } = await keyway.exchange({ api_key: otherKey.key, audience })
    return connectOnce(`ws://localhost:${port}`, token)
  }
  const suspendedSocket = (await connectOther())!
  const suspendedSocketClose = once(suspendedSocket, 'close')
  const { user } = await keyway.account.get()
  await command('users', 'suspend', user.id)
  assert.equal((await suspendedSocketClose)[0], 4410)
  await command('users', 'activate', user.id)
  const newSocket = await until('the hub accepts connections again', connectOther)
  newSocket.send('hello again')
  assert.equal(String((await once(newSocket, 'message'))[0]), 'hello again')
})

test('a page connects without a key, reconnects after a restart, and stops when the key is revoked', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const { url, keyway, restart } = await startKeyway(t, { KEYWAY_CORS_ORIGINS: origin })
  const { key, id } = await keyway.apiKeys.create()
  const env = { KEYWAY_URL: url, KEYWAY_API_KEY: key, PORT: String(port) }
  await start(t, 'browser-page.ts', env, /Open http/)

  const page = await (await browser.newContext()).newPage()
  await page.goto(origin)
  await page.getByRole('status').filter({ hasText: 'connected as' }).waitFor()
  assert.deepEqual(await keyway.agents.send(id, 'hello page'), { delivered: 1, held: 0 })
  await page.getByText('"hello page"').waitFor()
  const statusBefore = await page.getByRole('status').textContent()
  await restart()
  const reconnectedCondition = `/connected as/.test(state.textContent) && state.textContent !== ${JSON.stringify(statusBefore)}`
  await page.waitForFunction(`(state => ${reconnectedCondition})(document.querySelector('#state'))`)
  await keyway.apiKeys.revoke(id)
  await page.getByRole('status').filter({ hasText: 'Make a new key' }).waitFor()
})

test('the metered API counts calls, charges, and answers 401, 402 and 429 with the wait', async t => {
  const { url, keyway, command } = await startKeyway(t)
  await command('apps', 'add', 'quotes', '--name', 'Quotes')
  const secret = (await command('apps', 'secret', 'quotes')).trim()
  const port = await freePort()
  const settings = { KEYWAY_URL: url, KEYWAY_APP_ID: 'quotes', KEYWAY_APP_SECRET: secret, PORT: String(port) }
  await start(t, 'metered-api.ts', settings, /Listening/)
  const get = async (path: string, key: string) => {
    const response = await fetch(`http://localhost:${port}${path}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }
  const keyOf = async (limits: KeyLimits) =>
    keyway.apiKeys.create({ app_id: 'quotes', external_id: 'customer-42', metadata: { plan: 'pro' }, limits })

  const rateLimitedKey = await keyOf({ requests: [{ limit: 12, per: 'day' }] })
  const firstQuote = await get('/quote', rateLimitedKey.key)
  assert.deepEqual([firstQuote.status, firstQuote.body], [200, { customer: 'customer-42', plan: 'pro' }])
  assert.match(firstQuote.headers.get('ratelimit') ?? '', /^"requests";r=11;t=\d+$/)
  assert.equal(firstQuote.headers.get('ratelimit-policy'), '"requests";q=12')
  assert.equal((await get('/report', rateLimitedKey.key)).body.error, 'charge_not_authorized')
  const overRateAnswer = await get('/report', rateLimitedKey.key)
  assert.deepEqual([overRateAnswer.status, overRateAnswer.body.error], [429, 'rate_limited'])
  assert.ok(Number(overRateAnswer.headers.get('retry-after')) > 0)

  await keyway.account.authorizeCharges('quotes')
  const quotaKey = await keyOf({ quota: { remaining: 35 }, spend: [{ amount: '0.50', per: 'total' }] })
  assert.equal((await get('/report', quotaKey.key)).status, 200)
  assert.equal((await get('/report', quotaKey.key)).status, 200)
  const overSpendAnswer = await get('/report', quotaKey.key)
  assert.deepEqual([overSpendAnswer.status, overSpendAnswer.body.error], [402, 'spend_limit_reached'])
  const overQuotaAnswer = await get('/report', quotaKey.key)
  assert.deepEqual([overQuotaAnswer.status, overQuotaAnswer.body.error], [402, 'quota_exhausted'])
  assert.equal((await get('/quote', quotaKey.key)).status, 200)

  await keyway.apiKeys.revoke(quotaKey.id)
  assert.equal((await get('/quote', quotaKey.key)).status, 401)
  assert.equal((await get('/quote', 'nonsense')).status, 401)
  const { data } = await keyway.apiKeys.list({ external_id: 'customer-42', status: 'active' })
  assert.deepEqual(
    data.map(({ id, metadata }) => [id, metadata]),
    [[rateLimitedKey.id, { plan: 'pro' }]],
  )
})

test('an API of its own accepts tokens offline and keys by introspection, within their scopes, until they are revoked', async t => {
  const { url, keyway, command } = await startKeyway(t)
  const port = await freePort()
  const audience = `http://localhost:${port}`
  await command('apps', 'add', 'notes', '--name', 'Notes', '--audience', audience)
  const secret = (await command('apps', 'secret', 'notes')).trim()
  const settings = { KEYWAY_URL: url, KEYWAY_APP_ID: 'notes', KEYWAY_APP_SECRET: secret }
  await start(t, 'own-api.ts', { ...settings, KEYWAY_AUDIENCE: audience, PORT: String(port) }, /Listening/)
  const request = async (credential: string, method = 'GET') => {
    const headers = { authorization: `Bearer ${credential}` }
    const response = await fetch(audience, { method, headers })
    return { status: response.status, body: await response.json() }
  }

  const { key, id } = await keyway.apiKeys.create({ scopes: ['agent:connect', 'notes:read'] })
  const { token, agent_id } = await keyway.exchange({ api_key: key, audience })
  const hubToken = await keyway.exchange({ api_key: key })
  const expected = { status: 200, body: { person: agent_id, key: id } }
  assert.deepEqual(await request(key), expected)
  // The example refuses tokens until it has read the feed of revocations once, shortly after it starts to listen.
  await until('the API has read the feed', async () => (await request(token)).status === 200)
  assert.deepEqual(await request(token), expected)
  for (const credential of [key, token]) {
    const refusal = await request(credential, 'POST')
    assert.deepEqual([refusal.status, refusal.body.error], [403, 'insufficient_scope'])
  }
  for (const credential of ['', 'nonsense', hubToken.token, `${key}x`])
    assert.equal((await request(credential)).status, 401, credential)

  await keyway.apiKeys.revoke(id)
  assert.equal((await request(key)).status, 401)
  await until('the revocation arrived', async () => (await request(token)).status === 401)
})

test('the commands of examples/README.md work as printed, up to the start of each example', {
  timeout: 600_000, // of which most is needed only if the registry is slow
}, async t => {
  const { url, settings } = await startKeyway(t)
  const folder = copyOfExamples(t)
  const text = readFileSync(join(EXAMPLES_FOLDER, 'README.md'), 'utf8')
  const blocks = [...text.matchAll(/```sh\n([^`]+)```/g)].map(([, block]) => block!)
  assert.ok(blocks.length >= 6)
  for (const block of blocks) {
    // The example's long-running commands are tested elsewhere, with other ports.
    const commands = block.split('\n').filter(line => !/^(\w+=\S+ )?(node |\/usr\/sbin\/)/.test(line))
    const script = ['set -eu', ...commands, 'echo "app secret is $KEYWAY_APP_SECRET"'].join('\n')
    const env = { ...settings, KEYWAY_URL: url, KEYWAY_APP_SECRET: '' }
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { env, cwd: folder })
    assert.equal(/^app secret is sva_[\w-]{43}$/m.test(stdout), block.includes('apps secret'), block)
  }
})

/** Copies the examples into a folder like the project's, since `npm ci` removes packages that other tests are using. */
function copyOfExamples(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-examples-'))
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  for (const name of ['node_modules', 'package.json']) {
    symlinkSync(join(EXAMPLES_FOLDER, '..', name), join(folder, name))
  }
  cpSync(EXAMPLES_FOLDER, join(folder, 'examples'), {
    recursive: true,
    filter: path => basename(path) !== 'node_modules',
  })
  return folder
}

/**
 * Connects, retrying until the example hub has read the feed of revocations once: before that it refuses connections.
 */
function connectWhenReady(url: string, token: string): Promise<WebSocket> {
  return until('the hub accepts a connection', () => connectOnce(url, token))
}

async function connectOnce(url: string, token: string): Promise<WebSocket | null> {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } })
  const [isOpen] = await Promise.race([
    once(socket, 'open').then(() => [true]),
    once(socket, 'close').then(() => [false]),
  ]).catch(() => [false])
  return isOpen ? socket : null
}
