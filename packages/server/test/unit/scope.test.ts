import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scopeProblem } from '@keyway/sdk/protocol'
import fc from 'fast-check'
import { allows, toScopes } from '../../src/api-keys/api-key.ts'

test('no scopes allow everything, and a list exactly its scopes', () => {
  assert.equal(toScopes([]), null)
  assert.ok(allows(null, 'agent:connect'))
  assert.ok(allows(toScopes(['agent:connect']), 'agent:connect'))
  assert.ok(!allows(['agent:connect'], 'agents:send'))
  assert.ok(!allows(['agent:connectx', 'agent'], 'agent:connect'))
})

test('known scopes and custom ones are accepted', () => {
  for (const scope of [
    'agent:connect',
    'agents:send',
    'agents:read',
    'account:read',
    'account:write',
    'keys:read',
    'keys:write',
    'events:read',
    'own:thing',
    'x',
    '!#[]~',
  ]) {
    assert.equal(scopeProblem(scope), null, scope)
  }
  assert.equal(scopeProblem('a'.repeat(64)), null)
})

test('an unknown scope with a reserved prefix is refused, and the error lists the known ones', () => {
  for (const scope of [
    'agent:',
    'agent:conect',
    'agents:connect',
    'account:delete',
    'keys:create',
    'events:write',
    'admin:all',
    'agent:__proto__',
  ]) {
    assert.match(
      scopeProblem(scope) ?? '',
      /agent:connect, agents:send, agents:read, account:read, account:write, keys:read, keys:write, events:read, admin:read, admin:write/,
    )
  }
})

test('a text that is not an RFC 6749 scope token is refused', () => {
  for (const scope of ['', 'a b', 'a"b', 'a\\b', 'ä', 'a\n', 'a\0', 'a\t', '\x7f', 'a'.repeat(65)]) {
    assert.notEqual(scopeProblem(scope), null, JSON.stringify(scope))
  }
})

test('no accepted scope contains a separator', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 10 }), scope => {
      if (scopeProblem(scope) === null) assert.deepEqual([scope, 'x'].join(' ').split(' '), [scope, 'x'])
    }),
  )
})
