import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { commandNames, loadCommand } from '../../src/cli/commands.ts'
import { VERSION } from '../../src/version.ts'
import { keywayProcess, outputOf, keyway as runHere } from '../support/command-line.ts'
import { freePort } from '../support/free-port.ts'
import { closeCode, createJourney, type Journey, type SignIn } from '../support/journey.ts'
import { NODE_SECRET } from '../support/nodes.ts'
import { inTime, until } from '../support/patience.ts'
import { type ServedProcess, serve, temporaryFolder } from '../support/serve.ts'

const folder = temporaryFolder()
let settings: Record<string, string>
let server: ServedProcess
let journey: Journey
const ADA = 'ada@example.com'
const MAILS_AN_HOUR = 10
/** A command's change takes effect within a second, as documented; the rest is for the start of its process. */
const PROPAGATION_MS = 3000

before(async () => {
  settings = {
    KEYWAY_DATA_DIR: join(folder.path, 'data'),
    KEYWAY_PORT: String(await freePort()),
    KEYWAY_MAGIC_LINK_LIMITS: `${MAILS_AN_HOUR}/hour`,
    KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off',
  }
  server = await serve(settings)
  journey = createJourney(server.url)
})
after(async () => {
  await server.end('SIGTERM')
  folder.remove()
})

const exchangesOf = (bucket: { exchanges: number }) => bucket.exchanges

function keyway(...words: string[]) {
  return runHere(settings, ...words)
}

async function runJson(...words: string[]) {
  return JSON.parse(await outputOf(keyway(...words, '--json')))
}

async function signIn(email: string): Promise<SignIn> {
  await journey.sendLink(email)
  return journey.verify(email, await journey.readToken(email))
}

describe('the command line', () => {
  test('every command has a summary and a longer help', async () => {
    for (const name of commandNames) {
      const command = await loadCommand(name)
      assert.equal(command?.name, name)
      assert.ok(command.help.length > 10, name)
    }
    const { status, out } = await keywayProcess(settings, '--help')
    assert.equal(status, 0)
    for (const name of commandNames) assert.match(out, new RegExp(`^  ${name}\\b`, 'm'))
  })

  test('an invalid command line ends with one sentence and status 64', async () => {
    for (const args of [['nope'], ['users', 'show'], ['users', 'list', '--wrong'], ['apps', 'add', 'x']]) {
      const { status, out, err } = await keywayProcess(settings, ...args)
      assert.equal(status, 64, args.join(' '))
      assert.equal(out, '')
      assert.match(err, /^[^\n]+keyway .*--help\n$/)
    }
  })

  test('--version prints the version alone', async () => {
    assert.deepEqual(await keyway('--version'), { status: 0, out: `${VERSION}\n`, err: '' })
  })

  test('a command refuses a data directory without a database, names the file, and creates nothing', async () => {
    const emptyDirectory = join(folder.path, 'typing-mistake')
    for (const words of [
      ['users', 'list'],
      ['apps', 'add', 'x', '--name', 'X'],
      ['backup', 'x'],
      ['doctor'],
      ['inbox'],
    ]) {
      const { status, out, err } = await runHere({ ...settings, KEYWAY_DATA_DIR: emptyDirectory }, ...words)
      assert.deepEqual([status, out], [78, ''], words.join(' '))
      assert.match(err, new RegExp(`^There is no database at ${emptyDirectory}/keyway\\.db\\..+\n$`))
    }
    assert.ok(!existsSync(emptyDirectory))
  })

  test('"users import" and "keys import" read JSON lines, name the line that is refused, skip existing rows, and a running server accepts the keys', async () => {
    const file = (name: string, lines: object[]) => {
      const path = join(folder.path, name)
      writeFileSync(path, lines.map(line => JSON.stringify(line)).join('\n'))
      return path
    }
    const emails = Array.from({ length: 1201 }, (_, n) => `imported${n}@example.com`)
    const people = emails.map((email, n) => ({ email, name: `Person ${n}`, external_id: `p-${n}` }))
    const invalidFile = file('bad-people', [
      ...people.slice(0, 700),
      { email: 'nobody' },
      ...people.slice(700),
    ])
    const refusedImport = await keyway('users', 'import', invalidFile)
    assert.equal(refusedImport.status, 1)
    assert.match(refusedImport.err, /^Line 701: email: must be .+ \(500 imported before; mend the line/)
    const path = file('people', people)
    assert.deepEqual(await runJson('users', 'import', path), { imported: 701, skipped: 500 })
    assert.deepEqual(await runJson('users', 'import', path), { imported: 0, skipped: 1201 })

    const keyOf = (n: number) => `sk_live_${createHash('sha256').update(`imported ${n}`).digest('hex')}`
    const keys = emails.map((email, n) => ({
      email,
      sha256: createHash('sha256').update(keyOf(n)).digest('hex'),
      prefix: 'sk_live_',
      scopes: ['agent:connect'],
    }))
    const keysWithoutAccount = file('bad-keys', [
      ...keys.slice(0, 600),
      { ...keys[600]!, email: 'x@example.com' },
    ])
    const interruptedImport = await keyway('keys', 'import', keysWithoutAccount)
    assert.match(interruptedImport.err, /^Line 601: email: has no account \(500 imported before/)
    assert.deepEqual(await runJson('keys', 'import', file('keys', keys)), { imported: 701, skipped: 500 })
    const exchange = (api_key: string) =>
      fetch(`${server.url}/auth/agent-token`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ api_key }),
      })
    await until(
      'the running server accepts the imported keys',
      async () => (await exchange(keyOf(1200))).status === 200,
    )

    for (const [content, why] of [
      ['{"email":', /^Line 1: is no JSON object/],
      ['[]', /^Line 1: /],
      ['\n{"email":"a@example.com","mail":1}', /^Line 2: mail: is not a known field; did you mean "email"/],
    ] as const) {
      const invalidFile = join(folder.path, 'broken')
      writeFileSync(invalidFile, content)
      const { status, err } = await keyway('users', 'import', invalidFile)
      assert.equal(status, 1, content)
      assert.match(err, why)
    }
    assert.match((await keyway('keys', 'import', join(folder.path, 'no-such-file'))).err, /cannot be read/)
  })

  test('a command refuses a database that needs migrations, and leaves it as it is', async () => {
    const oldDirectory = join(folder.path, 'old')
    mkdirSync(oldDirectory)
    writeFileSync(join(oldDirectory, 'keyway.db'), '')
    const { status, err } = await runHere(
      { KEYWAY_DATA_DIR: oldDirectory, KEYWAY_SECRET: NODE_SECRET },
      'users',
      'list',
    )
    assert.equal(status, 78)
    assert.match(err, /needs the migrations 0001.+run "keyway migrate"\n$/)
    await outputOf(runHere({ KEYWAY_DATA_DIR: oldDirectory, KEYWAY_SECRET: NODE_SECRET }, 'migrate'))
    await outputOf(runHere({ KEYWAY_DATA_DIR: oldDirectory, KEYWAY_SECRET: NODE_SECRET }, 'users', 'list'))
  })

  test('a failed command ends with one sentence and status 1', async () => {
    const { status, err } = await keywayProcess(settings, 'users', 'show', 'nobody@example.com')
    assert.equal(status, 1)
    assert.equal(err.trim().split('\n').length, 1)
  })

  test('a file that cannot be opened is named in one sentence, with status 1', async () => {
    const missingPath = join(folder.path, 'no', 'such', 'folder', 'keyway.backup')
    const { status, err } = await keyway('backup', missingPath)
    assert.equal(status, 1)
    assert.match(err, /keyway\.backup.*ENOENT/)
    assert.equal(err.trim().split('\n').length, 1, err)
    const emptyDataDir = { KEYWAY_DATA_DIR: join(folder.path, 'empty') }
    for (const file of [missingPath, folder.path]) {
      const refusedRestore = await runHere({ ...settings, ...emptyDataDir }, 'restore', file)
      assert.equal(refusedRestore.status, 1)
      assert.match(refusedRestore.err, /(ENOENT|EISDIR)/)
      assert.equal(refusedRestore.err.trim().split('\n').length, 1, refusedRestore.err)
    }
  })

  test('inbox shows the mail of one address', async () => {
    await signIn(ADA)
    const { data } = await runJson('inbox', '--to', ADA)
    assert.ok(data.some((mail: { link: string | null }) => mail.link?.startsWith(`${server.url}/verify?`)))
    assert.deepEqual((await runJson('inbox', '--to', 'nobody@example.com')).data, [])
  })

  test('users show lists keys, sessions and mails, and no secret', async () => {
    const { access_token } = await signIn(ADA)
    const { key } = await journey.createKey(access_token, 'shown')
    const { status, out } = await keyway('users', 'show', ADA)
    assert.equal(status, 0)
    assert.match(out, /svc_\w{8}… +active +shown/)
    assert.match(out, /sign_in +sent/)
    assert.doesNotMatch(out, new RegExp(key))
    assert.doesNotMatch(out, /token=/)
  })

  test('a running server refuses a key within a second after keys revoke', async () => {
    const { access_token } = await signIn(ADA)
    const { id, key } = await journey.createKey(access_token, 'ended')
    const socket = await journey.connect(await journey.exchange(key))
    const pendingCloseCode = closeCode(socket)
    assert.equal((await runJson('keys', 'revoke', id)).status, 'revoked')
    assert.equal(await inTime('the close', pendingCloseCode, PROPAGATION_MS), 4410)
    await assert.rejects(journey.exchange(key), /api_key_revoked/)
  })

  test('usage shows the usage of a person or a key as a table, JSON or CSV', async () => {
    const { access_token } = await signIn('usage@example.com')
    const { id, key } = await journey.createKey(access_token, 'used')
    await journey.exchange(key)
    // Usage is stored every five seconds.
    const exchanges = async () =>
      (await runJson('usage', id, '--bucket', 'hour')).data.map(exchangesOf).join('')
    await until('the exchange is stored', async () => (await exchanges()).includes('1'))
    assert.equal((await runJson('usage', 'usage@example.com')).data.length, 30)
    assert.match((await outputOf(keyway('usage', id))).split('\n')[1]!, /^\d{4}-\d\d-\d\dT00:00:00\.000Z +1 /)
    assert.match(
      await outputOf(keyway('usage', id, '--csv', '--bucket', 'hour')),
      /^start,exchanges,api_calls,/,
    )
    for (const wrong of [
      ['--bucket', 'week'],
      ['--from', 'yesterday'],
      ['--from', '2000-01-01T00:00:00Z'],
    ]) {
      const { status, err } = await keyway('usage', id, ...wrong)
      assert.equal(status, 1)
      assert.match(err, new RegExp(wrong[0]!.slice(2)))
    }
    assert.equal((await keyway('usage', 'nobody@example.com')).status, 1)
  })

  test('keys limit sets and clears what the owner sees as operator_limits', async () => {
    const { access_token } = await signIn(ADA)
    const { id } = await journey.createKey(access_token, 'limited')
    const limits = {
      requests: [
        { limit: 10, per: 'second' },
        { limit: 1000, per: 'day' },
      ],
      spend: [{ amount: '5.00', per: 'month' }],
      quota: { remaining: 7, refill: { amount: 100, every: 'day' } },
    }
    const options = [
      '--requests',
      '1000/day,10/second',
      '--spend',
      '5/month',
      '--quota',
      '7',
      '--refill',
      '100/day',
    ]
    assert.deepEqual((await runJson('keys', 'limit', id, ...options)).operator_limits, limits)
    const keyAnswer = await fetch(`${server.url}/v1/api-keys/${id}`, {
      headers: { Authorization: `Bearer ${access_token}` },
    })
    assert.deepEqual(((await keyAnswer.json()) as { operator_limits: unknown }).operator_limits, limits)
    assert.deepEqual((await runJson('keys', 'limit', id, '--clear')).operator_limits, {})
    for (const wrong of [[], ['--clear', '--quota', '1'], ['--requests', '1'], ['--spend', '-1/day']]) {
      const { status, err } = await keyway('keys', 'limit', id, ...wrong)
      assert.notEqual(status, 0, wrong.join(' '))
      assert.match(err, /^[^\n]+\n$/)
    }
  })

  test('users suspend ends sessions, and users activate enables the keys again', async () => {
    const { access_token } = await signIn('bob@example.com')
    const { key } = await journey.createKey(access_token, 'lent')
    assert.equal((await runJson('users', 'suspend', 'bob@example.com')).status, 'suspended')
    await assert.rejects(journey.me(access_token), /401/)
    await assert.rejects(journey.exchange(key), /account_suspended/)
    assert.equal((await runJson('users', 'activate', 'bob@example.com')).status, 'active')
    await journey.exchange(key)
    await assert.rejects(journey.me(access_token), /401/)
  })

  test('users set-role and users delete change the account', async () => {
    const { user } = await signIn('eve@example.com')
    assert.equal((await runJson('users', 'set-role', user.id, 'support')).role, 'support')
    assert.equal((await keyway('users', 'set-role', user.id, 'queen')).status, 1)
    assert.equal((await runJson('users', 'delete', user.id)).email, null)
  })

  test('users set-role lists the keys that gain rights by it, and the last administrator cannot be removed', async () => {
    const { user, access_token: token } = await signIn('root@example.com')
    const { id, key } = await journey.createKey(token, 'everything')
    const { gaining_keys: gaining } = await runJson(
      'users',
      'set-role',
      user.id,
      'admin',
      '--reason',
      'founder',
    )
    assert.deepEqual(gaining, [{ id, key_prefix: key.slice(0, 12) }])
    for (const words of [
      ['set-role', user.id, 'user'],
      ['suspend', user.id],
      ['delete', user.id],
    ]) {
      const { status, err } = await keyway('users', ...words)
      assert.equal(status, 1)
      assert.match(err, /last active administrator/)
    }
  })

  test('credit adds an amount once for each idempotency key', async () => {
    const { user } = await signIn('rich@example.com')
    const creditArgs = [
      'credit',
      user.email,
      '5.00',
      '--idempotency-key',
      'order-1',
      '--description',
      'Sorry',
    ]
    const firstCredit = await runJson(...creditArgs)
    assert.deepEqual(
      [firstCredit.amount, firstCredit.balance_after, firstCredit.description],
      ['5.00', '7.00', 'Sorry'],
    )
    assert.deepEqual(await runJson(...creditArgs), firstCredit)
    assert.equal((await keyway('credit', user.email, '6', '--idempotency-key', 'order-1')).status, 1)
    assert.equal((await runJson('credit', user.email, '0.000001')).balance_after, '7.000001')
    for (const amount of ['0', '-1', '1.0000001', 'much', '1000001'])
      assert.equal((await keyway('credit', user.email, '--', amount)).status, 1, amount)
  })

  test('audit exports every act in order, as JSON lines and CSV without formulas', async () => {
    const { user } = await signIn('audited@example.com')
    await runJson('users', 'suspend', user.id, '--reason', '=HYPERLINK("https://evil.example")')
    await runJson('users', 'activate', user.id, '--reason', 'a "quoted", one')
    const lines = (await outputOf(keyway('audit')))
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    const [suspended, activated] = lines.filter(({ subject }) => subject.id === user.id)
    assert.deepEqual(
      [suspended.type, suspended.actor.type, suspended.reason, activated.reason],
      ['user.suspended', 'command', '=HYPERLINK("https://evil.example")', 'a "quoted", one'],
    )
    assert.deepEqual(
      lines.map(({ sequence }) => sequence),
      lines.map((_, index) => index + 1),
    )
    const csv = await outputOf(keyway('audit', '--csv', '--from', suspended.at))
    assert.ok(csv.includes(`,"'=HYPERLINK(""https://evil.example"")",`), csv)
    assert.ok(csv.includes(',"a ""quoted"", one",'))
    assert.ok(csv.startsWith('sequence,id,at,type,'))
    assert.equal((await keyway('audit', '--from', 'yesterday')).status, 1)
  })

  test('users clear-limits lets an address request mail again', async () => {
    const email = 'often@example.com'
    for (let sent = 0; sent < MAILS_AN_HOUR; sent++) await journey.sendLink(email)
    await assert.rejects(journey.sendLink(email), /rate_limited/)
    await runJson('users', 'clear-limits', email)
    await journey.sendLink(email)
  })

  test('apps add registers an id once, and apps secret prints only the secret', async () => {
    assert.equal((await runJson('apps', 'add', 'shop', '--name', 'The shop')).first_party, false)
    assert.equal((await keyway('apps', 'add', 'shop', '--name', 'Again')).status, 1)
    assert.match((await keywayProcess(settings, 'apps', 'secret', 'shop')).out, /^sva_[\w-]{43}\n$/)
    const { data } = await runJson('apps', 'list')
    const ids = data.map((app: { id: string }) => app.id).sort()
    assert.deepEqual(ids, ['console', 'hub', 'keyway-cli', 'service-sdk', 'shop'])
  })

  test('apps add gives rights over older keys and sessions only with --adopt, and reports their number', async () => {
    const eve = 'eve.of.old@example.com'
    for (const appId of ['old', 'older', 'oldest']) {
      await journey.sendLink(eve, appId)
      const { access_token } = await journey.verify(eve, await journey.readToken(eve))
      await journey.createKey(access_token, 'first', appId)
      await journey.createKey(access_token, 'second', appId)
    }
    const olderItems = '2 keys and 1 session that were created under this id before'
    const addApp = (id: string, ...options: string[]) =>
      outputOf(keyway('apps', 'add', id, '--name', 'Old', ...options))
    assert.match(
      await addApp('old'),
      new RegExp(`^Registered old\\. It has no rights over ${olderItems}\\.\n`),
    )
    assert.match(
      await addApp('older', '--adopt'),
      new RegExp(`^Registered older\\. It has rights over ${olderItems}\\.\n`),
    )
    const adoptedApp = JSON.parse(await addApp('oldest', '--adopt', '--json'))
    assert.deepEqual([adoptedApp.covers_from, adoptedApp.older], [null, { keys: 2, sessions: 1 }])
    const freshOutput = await addApp('fresh', '--adopt')
    assert.match(freshOutput, /^Registered fresh\.\n/)
    const { data } = await runJson('apps', 'list')
    const coversFromById = new Map(
      data.map((app: { id: string; covers_from: string }) => [app.id, app.covers_from]),
    )
    assert.match(String(coversFromById.get('old')), /^\d{4}-.*Z$/)
    for (const id of ['console', 'hub', 'service-sdk', 'older', 'fresh'])
      assert.equal(coversFromById.get(id), null, id)
  })

  test('apps add prints the four values that an OAuth client needs', async () => {
    const callback = 'https://web.example.com/callback'
    const [first, ...lines] = (
      await outputOf(keyway('apps', 'add', 'web', '--name', 'Web', '--redirect-uri', callback))
    ).split('\n')
    assert.equal(first, 'Registered web.')
    const secret = lines[2]!.replace('client_secret: ', '')
    assert.deepEqual(lines.filter(Boolean), [
      `issuer: ${server.url}`,
      'client_id: web',
      `client_secret: ${secret}`,
      `discovery_url: ${server.url}/.well-known/openid-configuration`,
    ])
    const callAsWeb = (pair: string) =>
      fetch(`${server.url}/v1/revocations`, {
        headers: { Authorization: `Basic ${Buffer.from(pair).toString('base64')}` },
      })
    assert.equal((await callAsWeb(`web:${secret}`)).status, 200)
    const spa = await runJson('apps', 'add', 'spa', '--name', 'Page', '--redirect-uri', callback, '--public')
    assert.deepEqual([spa.client_id, spa.client_secret, spa.public], ['spa', null, true])

    // A running server refuses a removed app at once, and publishes the key for a new app's id tokens within a second.
    await runJson('apps', 'remove', 'web')
    assert.equal((await callAsWeb(`web:${secret}`)).status, 401)
    await until(
      'the key for id tokens is published',
      async () => {
        const { keys } = await (await fetch(`${server.url}/.well-known/jwks.json`)).json()
        return keys.some(({ alg }: { alg: string }) => alg === 'RS256')
      },
      PROPAGATION_MS,
    )
  })

  test('apps set changes the named settings and clears those with an empty value, and apps show shows all', async () => {
    const [one, two] = ['https://set.example.com/one', 'https://set.example.com/two']
    const appOptions = ['--redirect-uri', one, '--redirect-uri', two, '--scope', 'keys:read']
    await runJson('apps', 'add', 'set', '--name', 'Set', '--audience', one, '--trusted', ...appOptions)
    const changedApp = await runJson(
      'apps',
      'set',
      'set',
      '--token-alg',
      'ES256',
      '--no-trusted',
      '--audience',
      '',
    )
    const { created_at, covers_from, ...settings } = changedApp
    assert.ok(created_at && covers_from)
    assert.deepEqual(settings, {
      id: 'set',
      name: 'Set',
      first_party: false,
      audience: null,
      verify_url: null,
      redirect_uris: [one, two],
      logout_uris: [],
      backchannel_logout_uri: null,
      token_alg: 'ES256',
      id_token_alg: 'RS256',
      scopes: ['keys:read'],
      trusted: false,
      public: false,
      jwks_uri: null,
      require_pkce: false,
    })
    assert.deepEqual(await runJson('apps', 'show', 'set'), changedApp)
    assert.match(await outputOf(keyway('apps', 'show', 'set')), /^redirect_uris +https:\S+one https:\S+two$/m)
    await runJson('apps', 'set', 'set', '--redirect-uri', '', '--name', 'Other')
    const { redirect_uris, name } = await runJson('apps', 'show', 'set')
    assert.deepEqual([redirect_uris, name], [[], 'Other'])
  })

  test('apps set and apps remove say in one sentence what is wrong', async () => {
    for (const [words, status, message] of [
      [['apps', 'set', 'set'], 64, /at least one setting/],
      [['apps', 'set', 'set', '--token-alg', 'HS256'], 64, /EdDSA, ES256, RS256/],
      [['apps', 'set', 'set', '--redirect-uri', 'http://set.example.com'], 1, /^redirect_uris: .*https:/],
      [['apps', 'set', 'nobody', '--trusted'], 1, /No app with this id/],
      [['apps', 'show', 'nobody'], 1, /No app with this id/],
      [['apps', 'remove', 'nobody'], 1, /No app with this id/],
      [['apps', 'remove', 'console'], 1, /own apps.*cannot be removed/],
      [['apps', 'secret', 'spa'], 1, /public client, which has no secret/],
    ] as [string[], number, RegExp][]) {
      const result = await keyway(...words)
      assert.deepEqual([result.status, result.out], [status, ''], words.join(' '))
      assert.match(result.err, message)
      assert.equal(result.err.trim().split('\n').length, 1)
    }
  })

  test('apps add refuses an audience of the service’s own tokens', async () => {
    for (const audience of [server.url, `${server.url}/hub`]) {
      const { status, err } = await keyway('apps', 'add', 'mine', '--name', 'Mine', '--audience', audience)
      assert.equal(status, 1)
      assert.match(err, /^audience: is the audience of this service.s own tokens; .*\n$/)
    }
  })

  test('keys rotate-signing publishes a new key and ends no session', async () => {
    const { access_token } = await signIn(ADA)
    const { kid } = await runJson('keys', 'rotate-signing')
    assert.ok(kid)
    await journey.me(access_token)
  })

  test('a running server publishes a key of keys rotate-signing within a second', async () => {
    const { kid } = await runJson('keys', 'rotate-signing')
    await until(
      'the new key is published',
      async () => {
        const { keys } = await (await fetch(`${server.url}/.well-known/jwks.json`)).json()
        return keys.some((key: { kid: string }) => key.kid === kid)
      },
      PROPAGATION_MS,
    )
  })

  test('mail test sends one mail, and doctor reports no problem', async () => {
    assert.equal((await runJson('mail', 'test', ADA)).state, 'sent')
    const { findings } = await runJson('doctor')
    assert.ok(
      findings.every((each: { ok: boolean }) => each.ok),
      JSON.stringify(findings),
    )
  })

  test('migrate can be repeated', async () => {
    assert.deepEqual(await runJson('migrate'), { ok: true })
  })
})
