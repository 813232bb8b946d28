import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AgentConnection } from '../../src/hub/agent-connection.ts'
import * as closeCodes from '../../src/hub/close-codes.ts'
import { DatabaseFreshness } from '../../src/hub/database-freshness.ts'
import {
  encodeMessage,
  FRAME_LIMITS,
  MAX_FRAME_ID_LENGTH,
  MAX_FRAME_SIZE,
  MAX_TOKEN_LENGTH,
  readFrame,
} from '../../src/hub/frame.ts'
import type { KeyStatus } from '../../src/hub/hub-ports.ts'
import { KeptMessage, MAX_SEQ_BYTES } from '../../src/hub/message-log.ts'
import { Registry } from '../../src/hub/registry.ts'
import { textFrame } from '../../src/hub/text-frame.ts'
import { encodeFrame, TEXT, textOf } from '../hub/support/raw-frames.ts'

const read = (frame: unknown, isBinary = false) => readFrame(Buffer.from(JSON.stringify(frame)), isBinary)
const invalidFrame = (detail: string, id?: string) => ({
  outcome: 'error',
  code: 'invalid_frame',
  detail,
  ...(id !== undefined && { id }),
})

describe('frames of agents', () => {
  test('only one JSON object in one text message is a frame', () => {
    for (const value of [null, 1, 'ping', true, [], [{ type: 'ping' }]])
      assert.deepEqual(read(value), { outcome: 'bad_message' })
    assert.deepEqual(read({ type: 'ping' }, true), { outcome: 'bad_message' })
    for (const text of ['', '{', '{"type":"ping"}{}', 'ping'])
      assert.deepEqual(readFrame(Buffer.from(text), false), { outcome: 'bad_message' })
  })

  test('a ping has no fields, whatever is sent with it', () => {
    assert.deepEqual(read({ type: 'ping', id: '1', token: 'x' }), {
      outcome: 'frame',
      frame: { type: 'ping' },
    })
  })

  test('a watch has an id if it is one, and its end has none', () => {
    const frameOf = (frame: object) => ({ outcome: 'frame', frame })
    assert.deepEqual(read({ type: 'watch', id: 'w', more: 1 }), frameOf({ type: 'watch', id: 'w' }))
    for (const id of [undefined, 7, '', 'i'.repeat(MAX_FRAME_ID_LENGTH + 1)])
      assert.deepEqual(read({ type: 'watch', id }), frameOf({ type: 'watch' }))
    assert.deepEqual(read({ type: 'unwatch', id: 'w' }), frameOf({ type: 'unwatch' }))
  })

  test('a refused message keeps its number, if that is one, since it consumes it', () => {
    const refusal = invalidFrame('data: is missing; null is a value.', 'a')
    assert.deepEqual(read({ type: 'send', id: 'a', to: 'all', seq: 3 }), { ...refusal, seq: 3 })
    assert.deepEqual(read({ type: 'send', id: 'a', to: 'all', seq: '3' }), refusal)
  })

  test('a frame of another type is refused with its id where that is one', () => {
    const detail = '`type` must be one of "ping", "token", "send", "watch", "unwatch".'
    const errorWith = (code: string, id?: string) => ({
      outcome: 'error',
      code,
      detail,
      ...(id !== undefined && { id }),
    })
    assert.deepEqual(read({ type: 'pong' }), errorWith('unknown_type'))
    assert.deepEqual(read({ type: '', id: 'a' }), errorWith('unknown_type', 'a'))
    assert.deepEqual(read({ id: 'a' }), errorWith('invalid_frame', 'a'))
    for (const type of [null, 1, ['ping'], {}])
      assert.deepEqual(read({ type, id: 7 }), errorWith('invalid_frame'))
  })

  test('a renewal has a token of bounded length', () => {
    const detail = 'token: must be an agent token, a text of at most 8192 characters.'
    const longestToken = 'a'.repeat(MAX_TOKEN_LENGTH)
    assert.deepEqual(read({ type: 'token', token: longestToken, id: 'x' }), {
      outcome: 'frame',
      frame: { type: 'token', token: longestToken },
    })
    for (const token of [undefined, null, 7, `${longestToken}a`])
      assert.deepEqual(read({ type: 'token', token }), invalidFrame(detail))
  })

  test('a message has an id, a target and data, each within its bounds', () => {
    const longestFields = { id: 'i'.repeat(MAX_FRAME_ID_LENGTH), to: 't'.repeat(64) }
    for (const data of [null, 0, '', [], { a: 1 }])
      assert.deepEqual(read({ type: 'send', ...longestFields, data, more: 1 }), {
        outcome: 'frame',
        frame: { type: 'send', ...longestFields, data },
      })
    for (const id of [undefined, null, 7, '', `${longestFields.id}i`])
      assert.deepEqual(
        read({ type: 'send', id, to: 'all', data: 1 }),
        invalidFrame('id: must be a text of 1 to 128 characters.'),
      )
    for (const to of [undefined, null, 7, '', `${longestFields.to}t`])
      assert.deepEqual(
        read({ type: 'send', id: 'a', to, data: 1 }),
        invalidFrame('to: must be a connection id, a key id, or "all".', 'a'),
      )
    assert.deepEqual(
      read({ type: 'send', id: 'a', to: 'all' }),
      invalidFrame('data: is missing; null is a value.', 'a'),
    )
    // A field that is named like a method of every object does not disturb the check for `data`.
    assert.equal(read({ type: 'send', id: 'a', to: 'all', hasOwnProperty: 1 }).outcome, 'error')
  })

  test('a number of a message is a whole number from 1 on', () => {
    const send = { type: 'send', id: 'x', to: 'all', data: 1 }
    assert.deepEqual(read({ ...send, seq: 1 }), { outcome: 'frame', frame: { ...send, seq: 1 } })
    for (const seq of [0, -1, 1.5, '1', true, 2 ** 53])
      assert.deepEqual(
        read({ ...send, seq }),
        invalidFrame('seq: must be a whole number from 1 on.', 'x'),
        String(seq),
      )
  })

  test('a message may reply to another, named by an id within its bounds', () => {
    const send = { type: 'send', id: 'a', to: 'all', data: 1 }
    const longestId = 'r'.repeat(MAX_FRAME_ID_LENGTH)
    for (const reply_to of ['r', longestId])
      assert.deepEqual(read({ ...send, reply_to }), { outcome: 'frame', frame: { ...send, reply_to } })
    assert.deepEqual(read({ ...send, reply_to: null }), { outcome: 'frame', frame: send })
    for (const reply_to of ['', 7, {}, `${longestId}r`])
      assert.deepEqual(
        read({ ...send, reply_to }),
        invalidFrame('reply_to: must be a text of 1 to 128 characters.', 'a'),
      )
    const frame = encodeMessage({ id: 'i', from: 'f', from_key_id: null, data: 1, reply_to: 'r' })
    assert.deepEqual(JSON.parse(String(frame)).reply_to, 'r')
  })

  test('a message is encoded up to the largest frame, with room for its number', () => {
    const encode = (data: string) => encodeMessage({ id: 'i', from: 'f', from_key_id: 'k', data })
    const frame = '{"type":"message","id":"i","from":"f","from_key_id":"k","data":"x"}'
    assert.equal(encode('x'), frame)
    const maxDataLength = 65_536 - MAX_SEQ_BYTES - frame.length + 1
    const numberedFrame = new KeptMessage(encode('x'.repeat(maxDataLength))!, 'node:1').numbered(
      Number.MAX_SAFE_INTEGER,
    )
    const longestText = textOf(numberedFrame)
    assert.ok(longestText.length <= 65_536 && JSON.parse(longestText).seq === Number.MAX_SAFE_INTEGER)
    assert.equal(encode('x'.repeat(maxDataLength + 1)), null)
    assert.equal(encode('ü'.repeat(maxDataLength / 2 + 1)), null, 'bytes, not characters')
    const encodeNested = (levels: number) => {
      const data = JSON.parse(`${'[{"a":'.repeat(levels / 2)}0${'}]'.repeat(levels / 2)}`)
      return encodeMessage({ id: 'i', from: 'f', from_key_id: 'k', data })
    }
    assert.equal(typeof encodeNested(64), 'string')
    for (const levels of [66, 1000, 200_000]) assert.equal(encodeNested(levels), null)
    assert.deepEqual([MAX_FRAME_SIZE, FRAME_LIMITS], ['64 KiB', { maxPayload: 65_536, maxFragments: 128 }])
  })
})

test('a text is one unmasked frame of RFC 6455, with the shortest length that holds it', () => {
  for (const length of [0, 125, 126, 65_535, 65_536]) {
    const payload = Buffer.from('x'.repeat(length))
    assert.deepEqual(textFrame(String(payload)), encodeFrame({ opcode: TEXT, payload, masked: false }))
  }
  assert.deepEqual(textFrame('ü'), Buffer.from([0x81, 2, 0xc3, 0xbc]))
})

describe('why a connection is closed', () => {
  const key: KeyStatus = {
    userId: 'ann',
    ownerStatus: 'active',
    revokedAt: null,
    expiresAt: null,
    allowedNetworks: [],
    scopes: null,
  } as unknown as KeyStatus
  const connection = { userId: 'ann', address: '192.0.2.1' }
  const closeStatusFor = (change: Partial<KeyStatus>) =>
    closeCodes.refusalOfKey({ ...key, ...change }, connection, 1000)

  test('each refusal of a key has its close code and reason', () => {
    assert.equal(closeStatusFor({}), null)
    assert.equal(closeStatusFor({ expiresAt: 1001, allowedNetworks: ['192.0.2.0/24'] }), null)
    assert.deepEqual(closeCodes.refusalOfKey(undefined, connection, 1000), { code: 4410, reason: 'revoked' })
    assert.deepEqual(closeStatusFor({ userId: 'bob' }), { code: 4401, reason: 'invalid_token' })
    assert.deepEqual(closeStatusFor({ revokedAt: 1 }), { code: 4410, reason: 'revoked' })
    assert.deepEqual(closeStatusFor({ ownerStatus: 'deleted' }), { code: 4410, reason: 'revoked' })
    assert.deepEqual(closeStatusFor({ expiresAt: 1000 }), { code: 4408, reason: 'token_expired' })
    assert.deepEqual(closeStatusFor({ ownerStatus: 'suspended' }), {
      code: 4403,
      reason: 'account_suspended',
    })
    assert.deepEqual(closeStatusFor({ allowedNetworks: ['203.0.113.0/24'] }), {
      code: 4403,
      reason: 'network_not_allowed',
    })
    assert.deepEqual(closeStatusFor({ scopes: ['own:thing'] }), { code: 4403, reason: 'insufficient_scope' })
    assert.equal(closeStatusFor({ scopes: ['agent:connect'] }), null)
  })

  test('the close code of a refused key tells why, and that of another end does not', () => {
    const changes: Partial<KeyStatus>[] = [
      { revokedAt: 1 },
      { expiresAt: 1000 },
      { ownerStatus: 'suspended' },
      { allowedNetworks: ['203.0.113.0/24'] },
      { scopes: ['own:thing'] },
    ]
    assert.deepEqual(
      changes.map(change => closeCodes.refusalCodeOf(closeStatusFor(change)!)),
      [
        'api_key_revoked',
        'api_key_expired',
        'account_suspended',
        'network_not_allowed',
        'insufficient_scope',
      ],
    )
    for (const status of [closeCodes.INVALID_TOKEN, closeCodes.GOING_AWAY, closeCodes.RATE_LIMITED])
      assert.equal(closeCodes.refusalCodeOf(status), null)
  })

  test('a token whose own scopes allow no connection has its close code too', () => {
    const connectionWith = (scope: string) =>
      ({ allows: (asked: string) => asked === scope }) as unknown as AgentConnection
    assert.equal(closeCodes.refusalOfScopes(connectionWith('agent:connect')), null)
    assert.deepEqual(closeCodes.refusalOfScopes(connectionWith('agents:send')), {
      code: 4403,
      reason: 'insufficient_scope',
    })
  })

  test('the codes of the protocol are what its document says', () => {
    const { BAD_MESSAGE, INVALID_TOKEN, TOKEN_EXPIRED, RATE_LIMITED, TOO_MANY_CONNECTIONS } = closeCodes
    const { SLOW_CONSUMER, GOING_AWAY, RESTARTING, TRY_AGAIN_LATER } = closeCodes
    assert.deepEqual(
      [BAD_MESSAGE, INVALID_TOKEN, TOKEN_EXPIRED, RATE_LIMITED, TOO_MANY_CONNECTIONS].map(textOfStatus),
      [
        '4400 bad_message',
        '4401 invalid_token',
        '4408 token_expired',
        '4429 rate_limited',
        '4429 too_many_connections',
      ],
    )
    assert.deepEqual([SLOW_CONSUMER, GOING_AWAY, RESTARTING, TRY_AGAIN_LATER].map(textOfStatus), [
      '4429 slow_consumer',
      '1001 going_away',
      '1012 restarting',
      '1013 try_again_later',
    ])
  })

  function textOfStatus({ code, reason }: closeCodes.CloseStatus): string {
    return `${code} ${reason}`
  }
})

test('a node is fresh until ten seconds after its last successful poll, and not before the first', () => {
  const freshness = new DatabaseFreshness()
  assert.equal(freshness.isFresh(5), false)
  assert.equal(freshness.lastPollAt, null)
  freshness.polled(5)
  assert.equal(freshness.lastPollAt, 5)
  assert.deepEqual(
    [freshness.isFresh(5), freshness.isFresh(10_004), freshness.isFresh(10_005)],
    [true, true, false],
  )
})

describe('the connections of a node', () => {
  const createConnection = (id: string, keyId: string, userId: string, state = 'open') =>
    ({ id, keyId, userId, state, renewalKeyId: null }) as unknown as AgentConnection & {
      keyId: string
      renewalKeyId: string | null
    }
  const ids = (connections: AgentConnection[]) => connections.map(({ id }) => id)

  test('that are broken are handed over round-robin by owner', () => {
    const registry = new Registry()
    for (const [id, userId] of ['a1 ann', 'a2 ann', 'a3 ann', 'b1 bob', 'b2 bob', 'e1 eve'].map(each =>
      each.split(' '),
    ))
      registry.hold(createConnection(id!, 'k', userId!, 'held'))
    assert.deepEqual(ids(registry.held(2)), ['a1', 'b1'])
    assert.deepEqual(ids(registry.held(4)), ['a1', 'b1', 'e1', 'a2'])
    assert.deepEqual(ids(registry.held(9)), ['a1', 'b1', 'e1', 'a2', 'b2', 'a3'])
  })

  test('are found by id, key and owner until they are removed', () => {
    const registry = new Registry()
    const [a, b, c] = [
      createConnection('a', 'k1', 'ann'),
      createConnection('b', 'k1', 'ann'),
      createConnection('c', 'k2', 'ann'),
    ]
    const connectionOfBob = createConnection('d', 'k3', 'bob')
    for (const each of [a, b, c, connectionOfBob]) registry.add(each)
    assert.deepEqual([registry.countOf('ann'), registry.countOf('bob'), registry.countOf('eve')], [3, 1, 0])
    assert.deepEqual([ids(registry.ofKey('k1')), registry.ofKey('none')], [['a', 'b'], []])
    assert.deepEqual([ids(registry.ofUser('ann')), registry.ofUser('eve')], [['a', 'b', 'c'], []])
    assert.deepEqual([registry.keyIdsOf('ann'), registry.keyIdsOf('eve')], [['k1', 'k2'], []])
    assert.deepEqual(registry.keyIds(), ['k1', 'k2', 'k3'])
    assert.deepEqual([registry.hasKey('k1'), registry.hasKey('k9')], [true, false])
    registry.remove(a)
    assert.deepEqual(
      [ids(registry.ofKey('k1')), registry.hasKey('k1'), registry.byId.has('a')],
      [['b'], true, false],
    )
    registry.remove(b)
    assert.deepEqual([registry.hasKey('k1'), registry.keyIds()], [false, ['k2', 'k3']])
    registry.remove(c)
    registry.remove(c)
    assert.deepEqual([registry.countOf('ann'), registry.keyIds()], [0, ['k3']])
  })

  test('that renew to another key are found by both until they are removed', () => {
    const registry = new Registry()
    const [a, b] = [createConnection('a', 'k1', 'ann'), createConnection('b', 'k2', 'ann')]
    for (const each of [a, b]) registry.add(each)
    a.renewalKeyId = 'k2'
    registry.bindKey('k2', a)
    assert.deepEqual(
      [ids(registry.ofKey('k2')), registry.keyIdsOf('ann')],
      [
        ['b', 'a'],
        ['k1', 'k2'],
      ],
    )
    registry.unbindKey('k1', a)
    registry.unbindKey('none', a)
    assert.deepEqual([registry.hasKey('k1'), registry.hasKey('k2')], [false, true])
    registry.remove(a)
    assert.deepEqual(ids(registry.ofKey('k2')), ['b'])
  })

  test('are the targets of a message by their id, their key or all, of one owner, open, and without the sender', () => {
    const registry = new Registry()
    const [a, b, c] = [
      createConnection('a', 'k1', 'ann'),
      createConnection('b', 'k1', 'ann'),
      createConnection('c', 'k2', 'ann'),
    ]
    const renewingConnection = createConnection('e', 'k2', 'ann')
    const pendingConnection = createConnection('p', 'k1', 'ann', 'pending')
    const connectionOfBob = createConnection('d', 'k3', 'bob')
    for (const each of [a, b, c, renewingConnection, pendingConnection, connectionOfBob]) registry.add(each)
    registry.bindKey('k1', renewingConnection)
    const targets = (to: string, exceptId: string | null = null) => ids(registry.targets('ann', to, exceptId))
    assert.deepEqual(targets('all'), ['a', 'b', 'c', 'e'])
    assert.deepEqual(targets('all', 'a'), ['b', 'c', 'e'])
    assert.deepEqual(targets('k1'), ['a', 'b'], 'not one that only renews to it')
    assert.deepEqual(targets('b'), ['b'])
    assert.deepEqual(targets('b', 'b'), [])
    for (const to of ['p', 'd', 'k3', 'none', '']) assert.deepEqual(targets(to), [], to)
  })
})
