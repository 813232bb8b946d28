import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { connect as dial, Socket } from 'node:net'
import { Duplex, PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { HUB_PROTOCOL, type Problem } from '@keyway/sdk/protocol'
import { toRfc3339 } from '../../src/clock.ts'
import { createHandshakes, type HandshakesDeps } from '../../src/hub/handshake.ts'
import type { Hub } from '../../src/hub/hub.ts'
import { MAX_PENDING_HANDSHAKES } from '../../src/hub/rate-limits.ts'
import { PROBLEMS } from '../../src/problems.ts'
import { createTestClock } from '../support/clock.ts'
import { caller } from '../support/services.ts'
import { Client, connect, makeKey, open, recordedLog, tokenOf } from './fixture.ts'

describe('the handshake', () => {
  test('a valid token connects as header and as subprotocol, and `ready` has its scopes and expiry', async t => {
    const { services, url, userId } = await open('sqlite', t)
    const key = await makeKey(services, userId, { scopes: ['agent:connect', 'agents:send'], name: 'pump' })
    for (const tokenIn of ['header', 'subprotocol'] as const) {
      const client = new Client(url, await tokenOf(services, key), { tokenIn })
      const ready = await client.next('ready')
      assert.equal(client.socket.protocol, HUB_PROTOCOL)
      assert.equal(client.socket.extensions, '')
      assert.deepEqual(ready, {
        type: 'ready',
        connection_id: ready.connection_id,
        agent_id: userId,
        key_id: key.id,
        key_name: 'pump',
        scopes: ['agent:connect', 'agents:send'],
        expires_at: toRfc3339(services.clock.now() + 900_000),
        expires_in: 900,
        heartbeat_seconds: 25,
        resume_token: ready.resume_token,
        resume_seconds: 120,
        resumed: false,
      })
    }
    const clientWithoutSubprotocol = new Client(url, await tokenOf(services, key), { protocols: [] })
    await clientWithoutSubprotocol.next('ready')
    assert.equal(clientWithoutSubprotocol.socket.protocol, '')
  })

  test('an invalid agent token is refused with 401 as header, and closed with 4401 as subprotocol', async t => {
    const { services, url, key } = await open('sqlite', t)
    const { tokens } = await services.signIn('eve@example.com')
    const expiredToken = await tokenOf(services, key)
    services.clock.advance(900_000)
    for (const bad of ['garbage', key.key, tokens.accessToken, expiredToken, `${expiredToken}x`]) {
      const refusalByHeader = await new Client(url, bad).refusal()
      assert.equal(refusalByHeader.status, 401)
      assert.equal(refusalByHeader.problem.code, 'invalid_token')
      assert.equal(await new Client(url, bad, { tokenIn: 'subprotocol' }).end(), '4401 invalid_token')
    }
    const refusalWithoutCredential = await new Client(url, null).refusal()
    assert.equal(refusalWithoutCredential.problem.code, 'authentication_required')
    const refusalWithCookie = await new Client(url, null, {
      headers: { cookie: 'keyway_session=x' },
    }).refusal()
    assert.equal(refusalWithCookie.status, 401)
  })

  test('a token in the query is refused with 401, and the answer shows both accepted ways', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    for (const path of [`?token=${token}`, `?access_token=${token}`, `?x=${token}`, `?api_key=${key.key}`]) {
      for (const own of [null, token]) {
        const { status, problem } = await new Client(url, own, { path }).refusal()
        assert.equal(status, 401)
        assert.match(problem.detail, /Authorization: Bearer.*bearer\.<token>/)
      }
    }
  })

  test('a query parameter that is named like a credential is refused, whatever its value, and others are ignored', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    for (const path of ['?token=x', '?a=b&Api_Key=x', '?refresh_token=x', '?x=&jwt=', '?a?bearer=x'])
      assert.equal((await new Client(url, token, { path }).refusal()).problem.code, 'invalid_token', path)
    for (const path of ['?lang=de&client=x', '?tokens=1', '?token', `?${'x'.repeat(2048)}`])
      await new Client(url, token, { path }).next('ready')
    const clientWithLongQuery = new Client(url, token, { path: `?${'x'.repeat(2049)}` })
    assert.equal((await clientWithLongQuery.refusal()).problem.code, 'invalid_token')
  })

  test('the search for a credential in the query takes linear time for hostile queries', async t => {
    const { port } = await open('sqlite', t)
    const queries = [
      'eyJ'.repeat(4900),
      'svc_'.repeat(3600),
      '&token'.repeat(2400),
      `&${'_-'.repeat(7000)}`,
      'a?'.repeat(7000),
    ]
    const cpuBefore = process.threadCpuUsage()
    for (let round = 0; round < 40; round++) {
      for (const query of queries) {
        const head = `GET /hub?${query} HTTP/1.1\r\nHost: x\r\n${UPGRADE}\r\n`
        assert.match(await sendRaw(port, head), /^HTTP\/1\.1 401 /)
      }
    }
    // CPU time, so that the load of the machine does not matter; a quadratic search took 100 ms for each query.
    const { user, system } = process.threadCpuUsage(cpuBefore)
    assert.ok(user + system < 2_000_000, `${(user + system) / 1000} ms of processor time`)
  })

  test('two credentials, or subprotocols without keyway.hub.v1, are refused with 400', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    const twoCredentialOptions = { protocols: [HUB_PROTOCOL, `bearer.${token}`] }
    assert.equal((await new Client(url, token, twoCredentialOptions).refusal()).status, 400)
    assert.equal((await new Client(url, token, { protocols: ['chat'] }).refusal()).status, 400)
    const tokenOnlyOptions = { protocols: [`bearer.${token}`] }
    assert.equal((await new Client(url, null, tokenOnlyOptions).refusal()).status, 400)
  })

  test('a refused handshake has the same problem document as the API, and names the invalid header', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    const refusals = {
      authentication_required: new Client(url, null),
      invalid_token: new Client(url, 'garbage'),
      forbidden: new Client(url, token, { headers: { origin: 'https://evil.test' } }),
      not_found: new Client(url, token, { path: 'x' }),
      invalid_request: new Client(url, token, { protocols: ['chat'] }),
    }
    for (const [code, client] of Object.entries(refusals)) {
      const { problem, headers } = await client.refusal()
      assert.equal(problem.code, code)
      assert.equal(problem.title, PROBLEMS[problem.code as keyof typeof PROBLEMS].title)
      assert.match(problem.detail, /\w.*\.$/)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      if (code === 'not_found') assert.match(problem.detail, /\/docs/)
    }
    const twoCredentialOptions = { protocols: [HUB_PROTOCOL, `bearer.${token}`] }
    for (const [client, field] of [
      [refusals.invalid_request, 'Sec-WebSocket-Protocol'],
      [new Client(url, token, twoCredentialOptions), 'Authorization'],
    ] as const) {
      const { problem } = await client.refusal()
      assert.equal(problem.errors?.[0]?.field, field)
    }
  })

  test('browsers may connect only from the service’s own origin and the listed ones', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    const origins = {
      'https://keyway.test': true,
      'https://app.example.com': true,
      'https://evil.test': false,
      null: false,
      'https://app.example.com.evil.test': false,
      'http://app.example.com': false,
      'https://app.example.com:8443': false,
      'HTTPS://APP.EXAMPLE.COM': false,
    }
    for (const [origin, allowed] of Object.entries(origins)) {
      const client = new Client(url, token, { headers: { origin } })
      if (allowed) await client.next('ready')
      else assert.equal((await client.refusal()).status, 403, origin)
    }
  })

  test('a revoked, expired or restricted key closes with its own code before `ready`', async t => {
    const { services, url, userId, later } = await open('sqlite', t)
    const closeReason = async (
      key: Awaited<ReturnType<typeof makeKey>>,
      ip: string,
      change: () => Promise<unknown>,
    ) => {
      const token = await tokenOf(services, key, ip)
      await change()
      const client = new Client(url, token)
      const closeStatus = await client.end()
      assert.deepEqual(client.received, [])
      return closeStatus
    }
    const changeNothing = async () => {}
    const revokedKey = await makeKey(services, userId)
    const revoke = () => services.apiKeys.revoke(userId, revokedKey.id, caller())
    assert.equal(await closeReason(revokedKey, '127.0.0.1', revoke), '4410 revoked')
    const otherNetworkKey = await makeKey(services, userId, { allowedNetworks: ['192.0.2.0/24'] })
    assert.equal(await closeReason(otherNetworkKey, '192.0.2.1', changeNothing), '4403 network_not_allowed')
    const rotatedKey = await makeKey(services, userId)
    const rotate = async () => {
      await services.apiKeys.rotate(userId, rotatedKey.id, 10, caller())
      await later(10_000)
    }
    assert.equal(await closeReason(rotatedKey, '127.0.0.1', rotate), '4408 token_expired')
    const suspendedKey = await makeKey(services, userId)
    assert.equal(
      await closeReason(suspendedKey, '127.0.0.1', () => services.users.suspend(userId)),
      '4403 account_suspended',
    )
  })

  test('a connection above the owner’s limit is closed with 4429, and other owners are not affected', async t => {
    const { services, url, key } = await open('sqlite', t, { maxConnectionsPerUser: 2 })
    await connect(services, url, key)
    const secondClient = await connect(services, url, key)
    const thirdClient = new Client(url, await tokenOf(services, key))
    assert.equal(await thirdClient.end(), '4429 too_many_connections')
    const { user } = await services.signIn('eve@example.com')
    await connect(services, url, await makeKey(services, user.id))
    secondClient.socket.close()
    await secondClient.end()
    await connect(services, url, key)
  })

  test('a list of subprotocols has a maximum length and number of names', async t => {
    const { hub } = await open('sqlite', t)
    const refusalOfProtocols = async (protocols: string) => {
      const { errors, detail } = await refusalOfUpgrade(hub, { 'sec-websocket-protocol': protocols })
      return errors?.[0]?.message ?? detail
    }
    assert.match(await refusalOfProtocols(`${HUB_PROTOCOL}, ${'a'.repeat(9300)}`), /too long/)
    assert.match(await refusalOfProtocols(`${'a, '.repeat(16)}${HUB_PROTOCOL}`), /Offer the subprotocol/)
    assert.doesNotMatch(
      await refusalOfProtocols(`${'a, '.repeat(15)}${HUB_PROTOCOL}`),
      /Offer the subprotocol/,
    )
  })

  test('a token of at most 8192 characters is checked, and a longer one is not', async t => {
    const checkedLengths: number[] = []
    const { hub } = await open('sqlite', t, {
      ports: {
        meter: { count() {}, countRefusal() {} },
        async verifyToken(token) {
          checkedLengths.push(token.length)
          return null
        },
        keyStatus: async () => new Map(),
        endingsSince: async () => [],
      },
    })
    for (const length of [8192, 8193]) {
      const { code } = await refusalOfUpgrade(hub, { authorization: `Bearer ${'a'.repeat(length)}` })
      assert.equal(code, 'invalid_token')
    }
    assert.deepEqual(checkedLengths, [8192, 0])
  })

  test('a token that cannot be checked is refused with `unavailable`, which does not call it invalid', async t => {
    const { services, hub } = await open('sqlite', t)
    await services.opened.close()
    const token = `${Buffer.from('{"kid":"unknown"}').toString('base64url')}.e30.x`
    const { code, detail } = await refusalOfUpgrade(hub, { authorization: `Bearer ${token}` })
    assert.equal(code, 'unavailable')
    assert.match(detail ?? '', /token cannot be checked/)
  })

  test('a handshake above the limit of concurrent token checks is refused with `unavailable`', async t => {
    const neverSettles = new Promise<never>(() => {})
    const { hub } = await open('sqlite', t, {
      ports: {
        meter: { count() {}, countRefusal() {} },
        verifyToken: () => neverSettles,
        keyStatus: async () => new Map(),
        endingsSince: async () => [],
      },
    })
    for (let n = 0; n < MAX_PENDING_HANDSHAKES; n++)
      void hub.handleUpgrade(
        upgradeRequest({ authorization: 'Bearer a.b.c' }),
        new PassThrough(),
        Buffer.alloc(0),
        caller(`198.51.${n >> 8}.${n & 255}`),
      )
    const { code, retry_after } = await refusalOfUpgrade(hub, { authorization: 'Bearer a.b.c' })
    assert.deepEqual([code, retry_after], ['unavailable', 1])
  })

  test('a network with too many failed handshakes is refused with 429, for a minute at most', async t => {
    const { services, url, port, key, later } = await open('sqlite', t)
    const statuses = await Promise.all(Array.from({ length: 10 }, () => failHandshakes(port, 101)))
    assert.ok(statuses.flat().includes(429))
    await later(60_000)
    await connect(services, url, key)
  })

  test('successful handshakes do not count towards the limit of failed ones', async t => {
    const { services, url, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    for (let round = 0; round < 11; round++) {
      const clients = Array.from({ length: 100 }, () => new Client(url, token))
      for (const client of clients) await client.next('ready')
      for (const client of clients) client.socket.terminate()
      for (const client of clients) await client.end()
    }
  })

  test('malformed handshakes are answered with 4xx, and others still connect', async t => {
    const { services, url, port, key } = await open('sqlite', t)
    const validRequest =
      'GET /hub HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    const attempts = [
      validRequest.replace('13', '8'),
      validRequest.replace('dGhlIHNhbXBsZSBub25jZQ==', 'short'),
      validRequest.replace('websocket\r', 'h2c\r'),
      validRequest.replace('GET', 'POST'),
      validRequest.replace('/hub', '/elsewhere'),
      `${validRequest}Sec-WebSocket-Extensions: constructor\r\n`,
      `${validRequest}Sec-WebSocket-Protocol: ,,,${' '.repeat(60_000)}\r\n`,
      `${validRequest}Sec-WebSocket-Protocol: keyway.hub.v1, keyway.hub.v1\r\nAuthorization: Bearer ${await tokenOf(services, key)}\r\n`,
    ]
    for (const attempt of attempts) assert.match(await sendRaw(port, `${attempt}\r\n`), /^HTTP\/1\.1 4\d\d /)
    await connect(services, url, key)
  })

  test('a request for another path, method, protocol or version is refused for that, even with a valid token', async t => {
    const { services, port, key, hub } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    const authorizedRequest = `GET /hub HTTP/1.1\r\nHost: x\r\n${UPGRADE}Authorization: Bearer ${token}\r\n\r\n`
    const statusOf = async (request: string) => (await sendRaw(port, request)).slice(9, 12)
    assert.equal(await statusOf(authorizedRequest.replace('/hub', '/hub/x')), '404')
    assert.equal(await statusOf(authorizedRequest.replace('/hub', '/x?/hub')), '404')
    assert.equal(await statusOf(authorizedRequest.replace('GET', 'POST')), '426')
    assert.equal(await statusOf(authorizedRequest.replace('websocket\r', 'h2c\r')), '426')
    const outdatedRequest = authorizedRequest.replace('Version: 13', 'Version: 8')
    const refusal = await sendRaw(port, outdatedRequest)
    assert.match(refusal, /^HTTP\/1\.1 426 .*\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n/s)
    const { code } = await refusalOfUpgrade(hub, { upgrade: undefined, authorization: `Bearer ${token}` })
    assert.equal(code, 'upgrade_required')
  })
})

describe('the response of a refused handshake', () => {
  test('has the headers that its status requires, and is never stored', async t => {
    const { services, url, port, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    const headersOf = async (client: Client) => {
      const { headers, status } = await client.refusal()
      assert.equal(headers['content-type'], 'application/problem+json')
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers.connection, 'close')
      assert.ok(headers['x-request-id'])
      return [status, headers['www-authenticate'], headers['retry-after'], headers.upgrade]
    }
    assert.deepEqual(await headersOf(new Client(url, null)), [401, 'Bearer', undefined, undefined])
    assert.deepEqual(await headersOf(new Client(url, 'garbage')), [
      ...[401, 'Bearer error="invalid_token"', undefined, undefined],
    ])
    assert.deepEqual(await headersOf(new Client(url, token, { path: 'x' })), [
      ...[404, undefined, undefined, undefined],
    ])
    for (let n = 0; n < 1000; n++) await failHandshakes(port, 1)
    assert.deepEqual(await headersOf(new Client(url, token)), [429, undefined, '1', undefined])
  })

  test('says in a sentence what is wrong, and names the invalid header', async t => {
    const { services, hub, url, port, key } = await open('sqlite', t)
    const token = await tokenOf(services, key)
    const { resume_token } = await new Client(url, token).next('ready')
    const authorization = `Bearer ${token}`
    const protocols = (text: string) => ({ 'sec-websocket-protocol': `${HUB_PROTOCOL}, ${text}` })
    const refusals: [UpgradeHeaders, string, RegExp, string?][] = [
      [{ upgrade: 'h2c' }, 'upgrade_required', /WebSocket client/],
      [{ 'sec-websocket-version': '8' }, 'upgrade_required', /version 13/],
      [{ origin: 'https://evil.test' }, 'forbidden', /origin.*KEYWAY_CORS_ORIGINS/],
      [{}, 'authentication_required', /Authorization: Bearer/],
      [{ authorization: 'Bearer' }, 'authentication_required', /Authorization: Bearer/],
      [{ authorization: `Basic ${token}` }, 'authentication_required', /Authorization: Bearer/],
      [{ authorization: 'Bearer garbage' }, 'invalid_token', /agent token is malformed.*POST/],
      [{ authorization, ...protocols('bearer.x') }, 'invalid_request', /two credentials/, 'Authorization'],
      [{ ...protocols('bearer.x, bearer.x') }, 'invalid_request', /two credentials/, 'Authorization'],
      [
        { authorization, 'sec-websocket-protocol': 'chat' },
        'invalid_request',
        /Offer the sub/,
        'Sec-WebSocket-Protocol',
      ],
      [{ authorization, 'keyway-resume': 'x' }, 'invalid_request', /Resume once/, 'Keyway-Resume'],
      [{ authorization, ...protocols('resume.x') }, 'invalid_request', /Resume once/, 'Keyway-Resume'],
      [
        { authorization, ...protocols(`resume.${resume_token}.0, resume.${resume_token}.0`) },
        ...(['invalid_request', /Resume once/, 'Keyway-Resume'] as const),
      ],
    ]
    for (const [headers, expectedCode, sentence, field] of refusals) {
      const { code, detail, errors } = await refusalOfUpgrade(hub, headers)
      const what = JSON.stringify(headers).slice(0, 80)
      assert.equal(code, expectedCode, what)
      assert.match(errors?.[0]?.message ?? detail ?? '', sentence, what)
      assert.equal(errors?.[0]?.field, field, what)
    }
    const invalidKey = `GET /hub HTTP/1.1\r\nHost: x\r\n${UPGRADE.replace(/Key: .*==/, 'Key: short')}Authorization: ${authorization}\r\n\r\n`
    const { errors } = JSON.parse((await sendRaw(port, invalidKey)).split('\r\n\r\n')[1]!) as Problem
    assert.deepEqual(errors, [
      { field: 'Sec-WebSocket-Key', message: 'Missing or invalid Sec-WebSocket-Key header.' },
    ])
    const draining = hub.drain(0)
    const { code, detail, retry_after } = await refusalOfUpgrade(hub, { authorization })
    assert.deepEqual([code, retry_after], ['unavailable', 1])
    assert.match(detail ?? '', /shutting down.*\.$/)
    await draining
  })
})

test('an empty or too long token as a subprotocol is closed with 4401, like any invalid one', async t => {
  const { url } = await open('sqlite', t)
  for (const token of ['', 'a'.repeat(8193)])
    assert.equal(await new Client(url, token, { tokenIn: 'subprotocol' }).end(), '4401 invalid_token')
})

test('a token as a header may be named in any case, with any number of spaces, and nothing else', async t => {
  const { services, url, key } = await open('sqlite', t)
  const token = await tokenOf(services, key)
  for (const authorization of [`bearer ${token}`, `BEARER   ${token}  `])
    await new Client(url, null, { headers: { authorization } }).next('ready')
  for (const authorization of [
    `Bearer ${token},x`,
    `Bearer ${token} x`,
    `xBearer ${token}`,
    `Bearer${token}`,
  ])
    assert.equal(
      (await new Client(url, null, { headers: { authorization } }).refusal()).problem.code,
      'authentication_required',
      authorization,
    )
})

describe('a handshake', () => {
  /** The handshakes of a hub that knows the token `valid`, with what it accepted. */
  const openHandshakes = (deps: Partial<HandshakesDeps> = {}) => {
    const { log, lines } = recordedLog()
    const clock = createTestClock()
    const accepted: unknown[] = []
    const expiresAt = clock.now() + 1
    const handshakes = createHandshakes({
      clock,
      ports: {
        verifyToken: async token =>
          token === 'valid' ? { agentId: 'ann', keyId: 'key', scopes: null, expiresAt } : null,
      },
      log,
      publicUrl: 'https://keyway.test',
      corsOrigins: [],
      isDraining: () => false,
      accept: (_socket, claims) => void accepted.push(claims?.agentId ?? null),
      ...deps,
    })
    const handle = (token: string, socket = silentSocket()) => {
      const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
      const request = upgradeRequest({ ...key, authorization: `Bearer ${token}` })
      return handshakes.handle(request, socket, Buffer.alloc(0), caller())
    }
    return { handle, clock, lines, accepted }
  }

  test('tells whether its token was valid, up to the millisecond before it expires', async () => {
    const { handle, clock, accepted } = openHandshakes()
    assert.deepEqual([await handle('valid'), await handle('other')], [true, false])
    clock.advance(1)
    assert.equal(await handle('valid'), false)
    assert.deepEqual(accepted, ['ann'])
  })

  test('that fails is logged and its socket destroyed', async () => {
    const failure = new Error('out of memory')
    const { handle, lines } = openHandshakes({
      accept() {
        throw failure
      },
    })
    const socket = silentSocket()
    assert.equal(await handle('valid', socket), false)
    assert.equal(socket.destroyed, true)
    assert.deepEqual(lines, [{ level: 'error', message: 'a handshake failed', fields: { err: failure } }])
  })

  test('whose token cannot be checked is logged', async () => {
    const failure = new Error('the database is down')
    const { handle, lines, accepted } = openHandshakes({
      ports: { verifyToken: () => Promise.reject(failure) },
    })
    assert.equal(await handle('valid'), false)
    assert.deepEqual(lines, [
      { level: 'warn', message: 'an agent token could not be checked', fields: { err: failure } },
    ])
    assert.deepEqual(accepted, [])
  })

  test('whose socket breaks while its token is checked ends without an error', async () => {
    const check = Promise.withResolvers<null>()
    const { handle, lines } = openHandshakes({ ports: { verifyToken: () => check.promise } })
    const socket = silentSocket()
    const handled = handle('valid', socket)
    socket.destroy(new Error('connection reset'))
    await new Promise(setImmediate)
    check.resolve(null)
    assert.equal(await handled, false)
    assert.deepEqual([lines, socket.destroyed], [[], true])
  })

  test('makes room for the next one when its token has been checked', async () => {
    let checks: (() => void)[] = []
    const { handle } = openHandshakes({
      ports: { verifyToken: () => new Promise(resolve => checks.push(() => resolve(null))) },
    })
    // A network may have only a thousand failed handshakes; those that cannot be checked do not count.
    const pending = Array.from({ length: 900 }, () => handle('x'))
    await new Promise(setImmediate)
    assert.equal(checks.length, 900)
    for (const resolve of checks.splice(0)) resolve()
    await Promise.all(pending)
    checks = []
    void handle('x')
    await new Promise(setImmediate)
    assert.equal(checks.length, 1)
  })
})

const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

function sendRaw(port: number, text: string): Promise<string> {
  return new Promise(resolve => {
    let answer = ''
    const socket = dial(port, '127.0.0.1', () => socket.write(text))
    socket.on('data', chunk => {
      answer += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
}

async function failHandshakes(port: number, count: number): Promise<number[]> {
  const request =
    'GET /hub HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  const statuses: number[] = []
  for (let sent = 0; sent < count; sent++) statuses.push(Number((await sendRaw(port, request)).slice(9, 12)))
  return statuses
}

/** A socket whose peer sends nothing. */
function silentSocket(): Duplex {
  return new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
}

type UpgradeHeaders = Record<string, string | undefined>

/** A request for an upgrade, as Node passes it on. */
function upgradeRequest(headers: UpgradeHeaders): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  const requiredHeaders = { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-version': '13' }
  return Object.assign(request, { method: 'GET', url: '/hub', headers: { ...requiredHeaders, ...headers } })
}

async function refusalOfUpgrade(hub: Hub, headers: UpgradeHeaders): Promise<Problem> {
  const socket = new PassThrough()
  const answer = text(socket)
  assert.equal(await hub.handleUpgrade(upgradeRequest(headers), socket, Buffer.alloc(0), caller()), false)
  return JSON.parse((await answer).split('\r\n\r\n')[1]!)
}
