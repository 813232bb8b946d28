import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, describe, test } from 'node:test'
import { KeywayError } from '../src/errors.ts'
import { verifyAccessToken, verifyAgentToken } from '../src/verify.ts'

const NOW_SECONDS = Date.UTC(2026, 10, 20, 12) / 1000
const now = () => NOW_SECONDS * 1000
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

const issuerPair = generateKeyPairSync('ed25519')
const attackerPair = generateKeyPairSync('ed25519')
const jwk = { ...issuerPair.publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'EdDSA', use: 'sig' }

let issuer = ''
let requestCount = 0
let keys: unknown[] = [jwk]
const server = createServer((_, response) => {
  requestCount++
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }))
})

before(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  server.unref()
})

const agentClaims = () => ({
  type: 'agent_ws',
  iss: issuer,
  aud: `${issuer}/hub`,
  sub: 'user',
  agent_id: 'user',
  app_id: 'service-sdk',
  key_id: 'key',
  iat: NOW_SECONDS,
  nbf: NOW_SECONDS,
  exp: NOW_SECONDS + 900,
  jti: 'j',
})
const agentHeader = { alg: 'EdDSA', typ: 'agent_ws', kid: 'k1' }

function createToken(
  claims: object,
  header: object = agentHeader,
  key: KeyObject = issuerPair.privateKey,
): string {
  const signingInput = `${encode(header)}.${encode(claims)}`
  return `${signingInput}.${sign(null, Buffer.from(signingInput), key).toString('base64url')}`
}

const verifyAgent = (text: string, at = now) =>
  verifyAgentToken(text, { issuer, audience: `${issuer}/hub`, now: at })
const isInvalid = (error: unknown) => error instanceof KeywayError && error.code === 'invalid_token'

describe('agent tokens', () => {
  test('a valid token returns its claims', async () => {
    assert.deepEqual(await verifyAgent(createToken(agentClaims())), agentClaims())
  })

  test('a token is accepted from five seconds before `nbf` until five seconds after `exp`', async () => {
    const text = createToken(agentClaims())
    await verifyAgent(text, () => (NOW_SECONDS + 904.999) * 1000)
    await assert.rejects(
      verifyAgent(text, () => (NOW_SECONDS + 905) * 1000),
      isInvalid,
    )
    await verifyAgent(text, () => (NOW_SECONDS - 5) * 1000)
    await assert.rejects(
      verifyAgent(text, () => (NOW_SECONDS - 5.001) * 1000),
      isInvalid,
    )
  })

  const wrongClaims: [string, () => object][] = [
    ['another issuer', () => ({ iss: 'https://evil.test' })],
    ['an issuer with a slash too many', () => ({ iss: `${issuer}/` })],
    ['another audience', () => ({ aud: issuer })],
    ['a list as audience', () => ({ aud: [`${issuer}/hub`] })],
    ['no audience', () => ({ aud: undefined })],
    ['the type of an access token', () => ({ type: 'access' })],
    ['no type', () => ({ type: undefined })],
    ['no exp', () => ({ exp: undefined })],
    ['exp as text', () => ({ exp: String(NOW_SECONDS + 900) })],
    ['exp with a fraction', () => ({ exp: NOW_SECONDS + 0.5 })],
    ['a huge exp', () => ({ exp: 1e300 })],
    ['a negative exp', () => ({ exp: -1 })],
    ['exp before iat', () => ({ exp: NOW_SECONDS - 1, iat: NOW_SECONDS })],
    ['no iat', () => ({ iat: undefined })],
    ['iat in the future', () => ({ iat: NOW_SECONDS + 6, exp: NOW_SECONDS + 900 })],
    ['no nbf', () => ({ nbf: undefined })],
    ['nbf in the future', () => ({ nbf: NOW_SECONDS + 6 })],
    ['an owner other than sub', () => ({ agent_id: 'somebody' })],
    ['no key id', () => ({ key_id: undefined })],
    ['no jti', () => ({ jti: undefined })],
    ['a scope that is no string', () => ({ scope: ['agent:connect'] })],
  ]
  for (const [what, change] of wrongClaims) {
    test(`a token with ${what} is refused`, async () => {
      await assert.rejects(verifyAgent(createToken({ ...agentClaims(), ...change() })), isInvalid)
    })
  }

  const hmacToken = (secret: string | Buffer) => {
    const signingInput = `${encode({ ...agentHeader, alg: 'HS256' })}.${encode(agentClaims())}`
    return `${signingInput}.${createHmac('sha256', secret).update(signingInput).digest('base64url')}`
  }
  const invalidTokens: [string, () => string][] = [
    ['no signature (alg none)', () => `${encode({ ...agentHeader, alg: 'none' })}.${encode(agentClaims())}.`],
    ['a signature by another key', () => createToken(agentClaims(), agentHeader, attackerPair.privateKey)],
    [
      'an HMAC under the public key',
      () => hmacToken(issuerPair.publicKey.export({ format: 'pem', type: 'spki' })),
    ],
    ['an HMAC under the raw public key', () => hmacToken(Buffer.from(String(jwk.x), 'base64url'))],
    ['alg EdDSA in another case', () => createToken(agentClaims(), { ...agentHeader, alg: 'eddsa' })],
    ['the typ of an access token', () => createToken(agentClaims(), { ...agentHeader, typ: 'at+jwt' })],
    ['no typ', () => createToken(agentClaims(), { alg: 'EdDSA', kid: 'k1' })],
    ['no kid', () => createToken(agentClaims(), { alg: 'EdDSA', typ: 'agent_ws' })],
    ['a critical extension', () => createToken(agentClaims(), { ...agentHeader, crit: ['b64'], b64: false })],
    [
      'its own key in the header',
      () =>
        createToken(
          agentClaims(),
          { ...agentHeader, kid: 'mine', jwk: attackerPair.publicKey.export({ format: 'jwk' }) },
          attackerPair.privateKey,
        ),
    ],
    ['two parts', () => createToken(agentClaims()).split('.').slice(0, 2).join('.')],
    ['four parts', () => `${createToken(agentClaims())}.x`],
    ['padding', () => `${createToken(agentClaims())}==`],
    ['white space', () => ` ${createToken(agentClaims())}`],
    ['stray bits in the last character', () => withStrayBits(createToken(agentClaims()))],
    ['a payload that is a list', () => createToken([agentClaims()])],
    ['ten thousand characters', () => `${'a'.repeat(10_000)}.a.a`],
    ['no characters', () => ''],
  ]
  for (const [what, create] of invalidTokens) {
    test(`a token with ${what} is refused`, async () => {
      await assert.rejects(verifyAgent(create()), isInvalid)
    })
  }
})

describe('access tokens', () => {
  const claims = () => ({
    type: 'access',
    iss: issuer,
    aud: issuer,
    sub: 'user',
    client_id: 'console',
    sid: 's',
    role: 'user',
    iat: NOW_SECONDS,
    exp: NOW_SECONDS + 900,
    jti: 'j',
  })
  const header = { ...agentHeader, typ: 'at+jwt' }

  test('a valid token returns its claims, with the issuer as audience', async () => {
    assert.deepEqual(await verifyAccessToken(createToken(claims(), header), { issuer, now }), claims())
  })

  test('neither type is accepted in the other’s place', async () => {
    await assert.rejects(verifyAccessToken(createToken(agentClaims()), { issuer, now }), isInvalid)
    await assert.rejects(verifyAgent(createToken(claims(), header)), isInvalid)
    const disguisedToken = createToken({ ...agentClaims(), aud: issuer }, header)
    await assert.rejects(verifyAccessToken(disguisedToken, { issuer, now }), isInvalid)
  })
})

describe("the issuer's keys", () => {
  /** Keys are cached by issuer and fetch function, so a test with a function of its own starts without cached keys. */
  const newFetch =
    (): typeof fetch =>
    (...input) =>
      fetch(...input)

  test('are fetched once for many tokens, and once more for many unknown key ids', async () => {
    const options = { issuer, audience: `${issuer}/hub`, now, fetch: newFetch() }
    const requestCountBefore = requestCount
    await Promise.all(Array.from({ length: 20 }, () => verifyAgentToken(createToken(agentClaims()), options)))
    assert.equal(requestCount, requestCountBefore + 1)
    for (let count = 0; count < 20; count++) {
      const tokenOfUnknownKey = createToken(agentClaims(), { ...agentHeader, kid: `invented-${count}` })
      await assert.rejects(verifyAgentToken(tokenOfUnknownKey, options), isInvalid)
    }
    assert.ok(requestCount <= requestCountBefore + 2)
  })

  test('of each algorithm verify its tokens, and no token under another', async () => {
    const pairs = {
      EdDSA: issuerPair,
      ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
      RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    }
    const entries = Object.entries(pairs)
    keys = entries.map(([alg, { publicKey }]) => ({
      ...publicKey.export({ format: 'jwk' }),
      kid: alg,
      alg,
      use: 'sig',
    }))
    const options = { issuer, audience: `${issuer}/hub`, now, fetch: newFetch() }
    const signToken = (alg: string, kid: string, privateKey: KeyObject) => {
      const text = `${encode({ alg, typ: 'agent_ws', kid })}.${encode(agentClaims())}`
      const hash = privateKey.asymmetricKeyType === 'ed25519' ? null : 'sha256'
      const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const
      return `${text}.${sign(hash, Buffer.from(text), key).toString('base64url')}`
    }
    for (const [alg, { privateKey }] of entries) {
      assert.deepEqual(await verifyAgentToken(signToken(alg, alg, privateKey), options), agentClaims())
      for (const [otherAlg] of entries.filter(([name]) => name !== alg)) {
        for (const forgedToken of [
          signToken(otherAlg, alg, privateKey),
          signToken(alg, otherAlg, privateKey),
          signToken(otherAlg, otherAlg, privateKey),
        ])
          await assert.rejects(verifyAgentToken(forgedToken, options), isInvalid, `${alg} as ${otherAlg}`)
      }
    }
    keys = [jwk]
  })

  test('for other algorithms or uses are ignored', async () => {
    keys = [
      null,
      1,
      { kty: 'oct', k: 'AA', kid: 'k1' },
      { ...jwk, use: 'enc' },
      { ...jwk, x: 'AAAA' },
      { ...jwk, alg: 'ES256' },
    ]
    const options = { issuer, audience: `${issuer}/hub`, now, fetch: newFetch() }
    await assert.rejects(verifyAgentToken(createToken(agentClaims()), options), isInvalid)
    keys = [jwk]
  })

  test('that cannot be fetched cause `unavailable`, not `invalid_token`', async () => {
    const failingFetch: typeof fetch = () => Promise.reject(new TypeError('no route'))
    const options = { issuer, audience: `${issuer}/hub`, now, fetch: failingFetch }
    await assert.rejects(
      verifyAgentToken(createToken(agentClaims()), options),
      (error: KeywayError) => error.code === 'unavailable' && error.retryable,
    )
  })
})

/** The same bytes in a non-canonical encoding: 64 bytes leave four bits of the last character unused. */
function withStrayBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1)!) + 1]
}
