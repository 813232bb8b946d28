import assert from 'node:assert/strict'
import { test } from 'node:test'
import { API_KEY_PATTERN } from '@keyway/sdk/protocol'
import {
  generateKey,
  type KeyUse,
  type OwnedApiKey,
  refusalOf,
  statusOf,
  toScopes,
} from '../../src/api-keys/api-key.ts'
import { aKey, NOW } from '../contract/fixtures.ts'

test('KEY-04: the characters of keys are uniformly distributed, and no two keys are equal', () => {
  const keys = Array.from({ length: 5000 }, generateKey)
  for (const key of keys) assert.match(key, API_KEY_PATTERN)
  assert.equal(new Set(keys).size, keys.length)
  const counts = new Map<string, number>()
  for (const char of keys.map(key => key.slice(4)).join('')) counts.set(char, (counts.get(char) ?? 0) + 1)
  assert.equal(counts.size, 62)
  const expected = (5000 * 32) / 62
  const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  // 61 degrees of freedom: a fair draw exceeds 130 once in a million runs.
  assert.ok(chiSquare < 130, `chi-square ${chiSquare}`)
})

test('the key pattern matches only whole keys', () => {
  const key = generateKey()
  for (const text of [`${key}\n`, `\n${key}`, `${key}0`, key.slice(0, -1), key.replace('svc_', 'svc-')]) {
    assert.doesNotMatch(text, API_KEY_PATTERN)
  }
})

test('revoked outranks expired, and a key has expired from the millisecond of its expiry', () => {
  assert.equal(statusOf({ revokedAt: null, expiresAt: null }, 10), 'active')
  assert.equal(statusOf({ revokedAt: null, expiresAt: 11 }, 10), 'active')
  assert.equal(statusOf({ revokedAt: null, expiresAt: 10 }, 10), 'expired')
  assert.equal(statusOf({ revokedAt: 5, expiresAt: 10 }, 10), 'revoked')
})

test('a key that may not be used is refused with the first of several reasons', () => {
  const use: KeyUse = { now: NOW, address: '192.0.2.1', scope: 'agent:connect' }
  const key: OwnedApiKey = { ...aKey('owner', { expiresAt: NOW + 1 }), ownerStatus: 'active' }
  assert.equal(refusalOf(key, use), null)
  // Each line adds a reason that takes precedence over the previous ones.
  const keyWithWrongScope = { ...key, scopes: toScopes(['agents:send']) }
  assert.equal(refusalOf(keyWithWrongScope, use), 'insufficient_scope')
  const keyInWrongNetwork = { ...keyWithWrongScope, allowedNetworks: ['10.0.0.0/8'] }
  assert.equal(refusalOf(keyInWrongNetwork, use), 'network_not_allowed')
  const suspendedKey: OwnedApiKey = { ...keyInWrongNetwork, ownerStatus: 'suspended' }
  assert.equal(refusalOf(suspendedKey, use), 'account_suspended')
  const expiredKey = { ...suspendedKey, expiresAt: NOW }
  assert.equal(refusalOf(expiredKey, use), 'api_key_expired')
  assert.equal(refusalOf({ ...expiredKey, revokedAt: NOW }, use), 'api_key_revoked')
  assert.equal(refusalOf({ ...expiredKey, ownerStatus: 'deleted' }, use), 'api_key_revoked')
  // Introspection passes neither address nor scope.
  assert.equal(refusalOf(keyInWrongNetwork, { now: NOW }), null)
  assert.equal(refusalOf({ ...key, scopes: null, allowedNetworks: [] }, use), null)
})
