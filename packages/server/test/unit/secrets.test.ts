import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import { describe, test } from 'node:test'
import { createSecrets, equals, isBearer, randomToken, SealError, sha256 } from '../../src/secrets.ts'

const OLD_SECRET = Buffer.alloc(32, 1)
const NEW_SECRET = Buffer.alloc(32, 2)
const HELLO = Buffer.from('hello')

/** The error that `open` throws. */
function refusal(open: () => unknown): Error {
  try {
    open()
  } catch (error) {
    assert.ok(error instanceof SealError)
    assert.equal(error.name, 'SealError')
    return error
  }
  return assert.fail('it opened')
}

describe('a sealed value', () => {
  const secrets = createSecrets([OLD_SECRET])
  const sealedValue = secrets.seal('mail', HELLO, 'row 1')

  test('opens in its own row and column, and cannot be read without the secret', () => {
    assert.deepEqual(secrets.open('mail', sealedValue, 'row 1'), HELLO)
    assert.ok(!Buffer.from(sealedValue.split('.')[1]!, 'base64url').includes(HELLO))
  })

  test('opens in no other row', () => {
    for (const row of ['row 2', 'row', 'row 11', ''])
      assert.match(refusal(() => secrets.open('mail', sealedValue, row)).message, /belongs to another row/)
  })

  test('opens in no other column', () => {
    for (const purpose of ['inbox', 'signing-key', 'session-secret', 'address-pepper'] as const)
      assert.match(
        refusal(() => secrets.open(purpose, sealedValue, 'row 1')).message,
        /belongs to another row/,
      )
  })

  test('does not open with a changed bit of nonce, text or tag', () => {
    const [id, body = ''] = sealedValue.split('.')
    const bytes = Buffer.from(body, 'base64url')
    assert.equal(bytes.length, 12 + HELLO.length + 16)
    for (const at of bytes.keys()) {
      const changedBytes = Buffer.from(bytes)
      changedBytes[at]! ^= 1
      const error = refusal(() =>
        secrets.open('mail', `${id}.${changedBytes.toString('base64url')}`, 'row 1'),
      )
      assert.ok(error.cause instanceof Error)
    }
  })

  test('does not open when it was truncated', () => {
    const fullLength = sealedValue.length
    for (let length = 0; length < fullLength; length++)
      refusal(() => secrets.open('mail', sealedValue.slice(0, length), 'row 1'))
  })

  test('differs each time', () => {
    assert.notEqual(secrets.seal('mail', HELLO, 'row 1'), sealedValue)
  })

  test('opens if it was sealed by earlier versions', () => {
    const valueSealedEarlier = '9877b20c.Bi01aSwpWFcsKBuAQ-z72BONIDVEri_PmlqxBOR2XfF3'
    assert.deepEqual(secrets.open('mail', valueSealedEarlier, 'row-1'), HELLO)
  })
})

describe('several secrets', () => {
  const newAndOldSecrets = createSecrets([NEW_SECRET, OLD_SECRET])
  const [oldSecretOnly, newSecretOnly] = [createSecrets([OLD_SECRET]), createSecrets([NEW_SECRET])]

  test('all open values, and the first one seals', () => {
    assert.deepEqual(newAndOldSecrets.open('mail', oldSecretOnly.seal('mail', HELLO, 'x'), 'x'), HELLO)
    assert.deepEqual(newSecretOnly.open('mail', newAndOldSecrets.seal('mail', HELLO, 'x'), 'x'), HELLO)
  })

  test('identify values that the first one did not seal', () => {
    assert.equal(newAndOldSecrets.isCurrent(newAndOldSecrets.seal('mail', HELLO, 'x')), true)
    assert.equal(newAndOldSecrets.isCurrent(oldSecretOnly.seal('mail', HELLO, 'x')), false)
    assert.equal(
      newAndOldSecrets.isCurrent(`${oldSecretOnly.fingerprint}.x${newAndOldSecrets.fingerprint}.`),
      false,
    )
  })

  test('have ids that are stable across versions', () => {
    assert.equal(oldSecretOnly.fingerprint, '9877b20c')
    assert.deepEqual(newAndOldSecrets.ids, [newSecretOnly.fingerprint, oldSecretOnly.fingerprint])
  })

  test('are listed without the missing one in the error', () => {
    const { message } = refusal(() => newSecretOnly.open('mail', oldSecretOnly.seal('mail', HELLO, 'x'), 'x'))
    assert.match(message, /9877b20c, which is not in KEYWAY_SECRET/)
  })

  test('must have at least one', () => {
    assert.throws(() => createSecrets([]), /at least one secret/)
  })
})

test('a derived key is one block of HKDF-Expand for its context, under any listed secret', () => {
  const newAndOldSecrets = createSecrets([NEW_SECRET, OLD_SECRET])
  const oldSecretOnly = createSecrets([OLD_SECRET])
  const context = Buffer.from('a context')
  const subKey = Buffer.from(hkdfSync('sha256', OLD_SECRET, 'keyway', 'event', 32))
  const expected = createHmac('sha256', subKey)
    .update(Buffer.concat([context, Buffer.from([1])]))
    .digest()
  assert.deepEqual(oldSecretOnly.deriveKey('event', context), expected)
  assert.deepEqual(newAndOldSecrets.deriveKey('event', context, oldSecretOnly.fingerprint), expected)
  assert.notDeepEqual(newAndOldSecrets.deriveKey('event', context), expected)
  assert.equal(newAndOldSecrets.deriveKey('event', context, '00000000'), null)
})

describe('a MAC', () => {
  const newAndOldSecrets = createSecrets([NEW_SECRET, OLD_SECRET])
  const oldSecretOnly = createSecrets([OLD_SECRET])

  test('is valid only for its message and purpose, under any listed secret', () => {
    const mac = oldSecretOnly.mac('login-code', '123')
    assert.equal(mac, '9877b20c.NmhwyZN97JkAGUENUKXTR0XXcSNCxGk9yTjIcFXFoYs')
    assert.equal(newAndOldSecrets.verifyMac('login-code', '123', mac), true)
    assert.equal(newAndOldSecrets.verifyMac('login-code', '124', mac), false)
    assert.equal(newAndOldSecrets.verifyMac('cursor', '123', mac), false)
    assert.equal(createSecrets([NEW_SECRET]).verifyMac('login-code', '123', mac), false)
    for (const part of ['', '9877b20c', '9877b20c.', mac.slice(0, -1), `${mac}A`])
      assert.equal(newAndOldSecrets.verifyMac('login-code', '123', part), false, part)
  })
})

test('equals compares whole texts', () => {
  assert.equal(equals('abc', 'abc'), true)
  assert.equal(equals('', ''), true)
  for (const other of ['abd', 'ab', 'abcd', '']) assert.equal(equals('abc', other), false)
})

test('an Authorization header matches its token only in the form of RFC 6750', () => {
  for (const header of ['Bearer token', 'bearer token', 'BEARER   token'])
    assert.equal(isBearer(header, 'token'), true, header)
  for (const header of [
    undefined,
    '',
    'token',
    'Bearer',
    'Bearer ',
    'Bearer toke',
    'Bearer tokens',
    'Basic token',
    'Bearer token x',
    'x Bearer token',
  ])
    assert.equal(isBearer(header, 'token'), false, String(header))
})

test('a random secret is stored as its SHA-256 in base64url', () => {
  assert.equal(sha256('x'), 'LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE')
})

test('random tokens of any length have all their bytes and never repeat', () => {
  const lengths = [...Array(1000).fill(24), ...Array(1000).fill(33), 4095, 4096, 4097, 6000]
  const tokens = lengths.map(bytes => randomToken(bytes))
  assert.deepEqual(
    tokens.map(token => Buffer.from(token, 'base64url').length),
    lengths,
  )
  for (const token of tokens) assert.match(token, /^[\w-]+$/)
  assert.equal(new Set(tokens).size, lengths.length)
})

test('a random token has the requested number of bytes', () => {
  assert.match(randomToken(32), /^[\w-]{43}$/)
  assert.notEqual(randomToken(32), randomToken(32))
})
