import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { newId } from '../../src/ids.ts'
import {
  pageCookie,
  parsePageCookie,
  parseRefreshToken,
  refreshToken,
  retryKeyHash,
} from '../../src/sessions/refresh-token.ts'

const id = newId(Date.UTC(2026, 10, 20))
const secret = randomBytes(32)

test('a refresh token contains its session and counter, and a MAC under the session’s secret', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.integer({ min: 0, max: 2 ** 48 - 1 }), (sessionId, counter) => {
      const parsedToken = parseRefreshToken(refreshToken(sessionId, counter, secret))
      assert.equal(parsedToken?.sessionId, sessionId)
      assert.equal(parsedToken?.counter, counter)
      assert.equal(parsedToken?.provenBy(secret), true)
    }),
  )
})

test('a refresh token is svr_ and base64url, and another secret does not verify it', () => {
  const token = refreshToken(id, 0, secret)
  assert.match(token, /^svr_[A-Za-z0-9_-]{72}$/)
  assert.equal(parseRefreshToken(token)?.provenBy(randomBytes(32)), false)
})

test('credentials keep their format across versions: the MAC covers kind, session and counter', () => {
  const idBytes = Buffer.from(id.replaceAll('-', ''), 'hex')
  const credential = (kind: string, head: Buffer) => {
    const mac = createHmac('sha256', secret).update(`${kind}\0`).update(head).digest()
    return Buffer.concat([head, mac]).toString('base64url')
  }
  const counterBytes = Buffer.from('000000000102', 'hex')
  assert.equal(
    refreshToken(id, 258, secret),
    `svr_${credential('refresh', Buffer.concat([idBytes, counterBytes]))}`,
  )
  assert.equal(pageCookie(id, secret), `svp_${credential('page', idBytes)}`)
})

test('a counter gives one token, and the next counter another', () => {
  assert.equal(refreshToken(id, 3, secret), refreshToken(id, 3, secret))
  assert.notEqual(refreshToken(id, 3, secret), refreshToken(id, 4, secret))
})

test('a token with a changed character is malformed or fails verification', () => {
  const token = refreshToken(id, 1, secret)
  const anyChange = fc.record({
    at: fc.nat(token.length - 1),
    with: fc.string({ minLength: 1, maxLength: 1 }),
  })
  fc.assert(
    fc.property(anyChange, change => {
      fc.pre(token[change.at] !== change.with)
      const changedToken = token.slice(0, change.at) + change.with + token.slice(change.at + 1)
      assert.notEqual(parseRefreshToken(changedToken)?.provenBy(secret) ?? false, true)
    }),
  )
})

test('truncated, extended, padded and otherwise encoded tokens are malformed', () => {
  const token = refreshToken(id, 1, secret)
  const spellings = [
    ...Array.from({ length: 10 }, (_, cut) => token.slice(0, -1 - cut)),
    `${token}A`,
    `${token}=`,
    `${token}\n`,
    ` ${token}`,
    token.replace('svr_', 'SVR_'),
    token.replace('svr_', 'svp_'),
    token.slice(4),
    `svr_${Buffer.from(token.slice(4), 'base64url').toString('hex')}`,
    '',
  ]
  for (const text of spellings) assert.equal(parseRefreshToken(text), null, text)
})

test('page cookies and refresh tokens are not interchangeable', () => {
  const cookie = pageCookie(id, secret)
  const token = refreshToken(id, 0, secret)
  assert.equal(parsePageCookie(cookie)?.provenBy(secret), true)
  assert.equal(parsePageCookie(cookie)?.sessionId, id)
  assert.equal(parseRefreshToken(cookie), null)
  assert.equal(parsePageCookie(token), null)
  assert.equal(parseRefreshToken(`svr_${cookie.slice(4)}`), null)
  // The MAC of a page cookie is not valid in a refresh token either.
  const cookieMac = Buffer.from(cookie.slice(4), 'base64url').subarray(16)
  const tokenHead = Buffer.from(token.slice(4), 'base64url').subarray(0, 22)
  const forgedToken = parseRefreshToken(`svr_${Buffer.concat([tokenHead, cookieMac]).toString('base64url')}`)
  assert.equal(forgedToken?.provenBy(secret), false)
})

test('an Idempotency-Key is stored as 16 bytes of its hash', () => {
  assert.match(retryKeyHash('0123456789abcdef'), /^[A-Za-z0-9_-]{22}$/)
  assert.notEqual(retryKeyHash('0123456789abcdef'), retryKeyHash('0123456789abcdeF'))
})
