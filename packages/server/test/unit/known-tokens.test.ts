import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createLog } from '../../src/log.ts'
import type { OpenedSigningKey } from '../../src/signing-keys/algorithms.ts'
import { keyPairOf } from '../../src/signing-keys/ed25519.ts'
import { createJwt } from '../../src/signing-keys/jwt.ts'
import { KnownTokens } from '../../src/signing-keys/known-tokens.ts'
import { createSigner } from '../../src/signing-keys/signer.ts'
import type { SigningKeys } from '../../src/signing-keys/signing-keys.ts'
import { altered } from '../support/altered.ts'
import { createTestClock, type TestClock } from '../support/clock.ts'

const part = (bytes: number) => randomBytes(bytes).toString('base64url')
const newToken = (payloadBytes = 400) => `${part(60)}.${part(payloadBytes)}.${part(64)}`

const EXPECTED = { typ: 'agent_ws', audience: 'hub' } as const

function agentClaims(clock: TestClock) {
  const issuedAt = Math.floor(clock.now() / 1000)
  const subject = { type: 'agent_ws', iss: 'https://keyway.test', aud: 'hub', sub: 'owner', jti: 'one' }
  return { ...subject, iat: issuedAt, exp: issuedAt + 900 }
}

test('only an added token is known, and not one with a changed character', () => {
  const knownTokens = new KnownTokens()
  const token = newToken()
  assert.equal(knownTokens.has(token), false)
  knownTokens.add(token)
  assert.equal(knownTokens.has(token), true)
  for (let at = 0; at < token.length; at++) {
    // Replaces the character by the next one, and by one with the same low byte.
    for (const change of [1, 0x100]) {
      const changedCharacter = String.fromCharCode(token.charCodeAt(at) + change)
      assert.equal(knownTokens.has(token.slice(0, at) + changedCharacter + token.slice(at + 1)), false)
    }
    assert.equal(knownTokens.has(token.slice(0, at)), false)
  }
  assert.equal(knownTokens.has(`${token}A`), false)
  assert.equal(knownTokens.has(''), false)
})

test('with more tokens than capacity the newest is known, and no other token is found', () => {
  const knownTokens = new KnownTokens()
  const addedTokens = Array.from({ length: 30_000 }, () => newToken(20))
  for (const token of addedTokens) {
    knownTokens.add(token)
    assert.equal(knownTokens.has(token), true)
  }
  const knownCount = addedTokens.filter(token => knownTokens.has(token)).length
  assert.ok(knownCount > 7000 && knownCount <= 8192, `${knownCount} kept`)
  assert.equal(knownTokens.has(''), false)
  for (const cut of [1, 2, 4, 8, 16])
    assert.ok(!addedTokens.some(token => knownTokens.has(token.slice(0, -cut))), `without ${cut} characters`)
})

test('a token longer than a slot is not stored, and overwrites no other', () => {
  const knownTokens = new KnownTokens()
  const tokens = Array.from({ length: 200 }, () => newToken(10))
  for (const token of tokens) knownTokens.add(token)
  const tokensKnownBefore = tokens.filter(token => knownTokens.has(token))
  const oversizedToken = newToken(2000)
  knownTokens.add(oversizedToken)
  assert.equal(knownTokens.has(oversizedToken), false)
  assert.deepEqual(
    tokensKnownBefore.filter(token => !knownTokens.has(token)),
    [],
  )
})

test('a token with another signature is refused however often it is presented, and is never cached', async () => {
  const clock = createTestClock()
  const { secretKey } = keyPairOf(Buffer.alloc(32, 3))
  const key: OpenedSigningKey = { kid: 'one', alg: 'EdDSA', secretKey }
  const signingKeys = { current: () => key, find: async () => key } as unknown as SigningKeys
  const jwt = createJwt({
    signingKeys,
    signer: createSigner(createLog('silent')),
    clock,
    issuer: 'https://keyway.test',
  })
  const forgedToken = altered(jwt.sign('agent_ws', agentClaims(clock)))
  for (let attempt = 0; attempt < 3; attempt++) assert.equal(await jwt.verify(forgedToken, EXPECTED), null)
})

test('a known token is dropped at its expiry and when its signing key is removed', async () => {
  const clock = createTestClock()
  const { secretKey } = keyPairOf(Buffer.alloc(32, 3))
  let key: OpenedSigningKey | null = { kid: 'one', alg: 'EdDSA', secretKey }
  const signingKeys = { current: () => key, find: async () => key } as unknown as SigningKeys
  const jwt = createJwt({
    signingKeys,
    signer: createSigner(createLog('silent')),
    clock,
    issuer: 'https://keyway.test',
  })
  const token = jwt.sign('agent_ws', agentClaims(clock))
  assert.ok(await jwt.verify(token, EXPECTED))
  assert.equal(await jwt.verify(token, { ...EXPECTED, audience: 'another' }), null)
  assert.equal(await jwt.verify(token, { ...EXPECTED, typ: 'at+jwt' }), null)
  const removedKey = key
  key = null
  assert.equal(await jwt.verify(token, EXPECTED), null)
  key = removedKey
  assert.ok(await jwt.verify(token, EXPECTED))
  clock.advance(900_000)
  assert.equal(await jwt.verify(token, EXPECTED), null)
})
