import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MINUTE } from '../../src/clock.ts'
import type { Ending } from '../../src/endings/ending.ts'
import { AgentConnection } from '../../src/hub/agent-connection.ts'
import { DatabaseFreshness } from '../../src/hub/database-freshness.ts'
import type { KeyStatus } from '../../src/hub/hub-ports.ts'
import { createKeyStatusLoader } from '../../src/hub/key-status-loader.ts'
import { MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import { Registry } from '../../src/hub/registry.ts'
import { createRevocations, SWEEP_WINDOW_MS } from '../../src/hub/revocations.ts'
import { createTestClock } from '../support/clock.ts'
import { caller } from '../support/services.ts'

const PAGE_SIZE = 1000

/** The revocations of a node with two connections of ann, with the keys a and b, and one of eve, with the key e. */
function openRevocations() {
  const clock = createTestClock()
  const registry = new Registry()
  const freshness = new DatabaseFreshness()
  const loads: string[][] = []
  const reads: [since: number, afterId: string | null][] = []
  /** `endings`: the pages, or failures, of the next reads. */
  const state = { endings: [] as (Ending[] | Error)[], change: {} as Partial<KeyStatus> }
  const ownerOf = (keyId: string) => (keyId === 'e' ? 'eve' : 'ann')
  const statusOf = (id: string) =>
    ({
      ...{ id, userId: ownerOf(id), name: `name of ${id}`, ownerStatus: 'active', revokedAt: null },
      ...{ expiresAt: clock.now() + MINUTE, allowedNetworks: [], scopes: null, ...state.change },
    }) as unknown as KeyStatus
  const keyStatuses = createKeyStatusLoader({
    async keyStatus(ids) {
      loads.push([...ids])
      return new Map(ids.map(id => [id, statusOf(id)]))
    },
  })
  const revocations = createRevocations({
    ports: {
      async endingsSince(since, afterId, limit) {
        assert.equal(limit, PAGE_SIZE)
        reads.push([since, afterId])
        const page = state.endings.shift() ?? []
        if (page instanceof Error) throw page
        return page
      },
    },
    clock,
    registry,
    keyStatuses,
    freshness,
  })
  const closed: string[] = []
  const connections = ['a', 'b', 'e'].map(keyId => {
    const claims = { agentId: ownerOf(keyId), keyId, scopes: null, expiresAt: 0 }
    const host = {
      deregister: () => {},
      hold() {},
      logClose: (_: unknown, { reason }: { reason: string }) => void closed.push(`${keyId} ${reason}`),
    }
    const log = new MessageLog(claims.agentId, new MessageBudget())
    const connection = new AgentConnection(`c-${keyId}`, null, claims, caller(), 0, host, log)
    connection.state = 'open'
    registry.add(connection)
    return connection
  })
  let lastId = 0
  const ending = (kind: Ending['kind'], subjectId: string, userId = ownerOf(subjectId), at = clock.now()) =>
    ({ id: `${++lastId}`, kind, subjectId, userId, at }) as unknown as Ending
  const settle = async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
  }
  return {
    revocations,
    registry,
    clock,
    freshness,
    state,
    connections,
    ending,
    reads,
    /** The keys whose status was loaded since the last call, and the connections that were closed. */
    async effects() {
      await settle()
      return [loads.splice(0).flat().sort(), closed.splice(0).sort()]
    },
  }
}

describe('an event', () => {
  test('loads the status of the keys that it concerns, and of no others', async () => {
    const { revocations, effects } = openRevocations()
    for (const [event, loaded] of [
      [{ type: 'api_key.changed', keyId: 'a', userId: 'ann' }, ['a']],
      [{ type: 'api_key.changed', keyId: 'elsewhere', userId: 'ann' }, []],
      [{ type: 'user.changed', userId: 'ann' }, ['a', 'b']],
      [{ type: 'user.changed', userId: 'bob' }, []],
      [{ type: 'session.ended', sessionId: 'a', userId: 'ann' }, []],
      [{ type: 'signing_keys.changed' }, []],
      [{ type: 'events.gap' }, ['a', 'b', 'e']],
    ] as const) {
      revocations.receive(event)
      assert.deepEqual(await effects(), [loaded, []], JSON.stringify(event))
    }
  })

  test('closes the connections of a key that may no longer be used, and updates the others', async () => {
    const { revocations, state, connections, effects, clock } = openRevocations()
    revocations.recheck('a')
    assert.deepEqual(await effects(), [['a'], []])
    assert.deepEqual(
      connections.map(({ keyName, keyExpiresAt }) => [keyName, keyExpiresAt]),
      [
        ['name of a', clock.now() + MINUTE],
        [null, Number.POSITIVE_INFINITY],
        [null, Number.POSITIVE_INFINITY],
      ],
    )
    state.change = { revokedAt: 1 }
    revocations.recheck('a')
    assert.deepEqual(await effects(), [['a'], ['a revoked']])
  })

  test('leaves a connection open that only renews to the key, and has its status loaded again', async () => {
    const { revocations, registry, state, connections, effects } = openRevocations()
    const [first, second] = connections
    registry.bindKey('b', first!)
    state.change = { revokedAt: 1 }
    revocations.receive({ type: 'api_key.changed', keyId: 'b', userId: 'ann' })
    assert.deepEqual([first!.statusIsStale, second!.statusIsStale], [true, true])
    assert.deepEqual(await effects(), [['b'], ['b revoked']])
  })
})

describe('a sweep', () => {
  test('loads the status of the keys that ended and of the keys of accounts that ended, once each', async () => {
    const { revocations, state, ending, effects } = openRevocations()
    const endings = [
      ending('api_key', 'a'),
      ending('api_key', 'elsewhere'),
      ending('session', 'e', 'eve'),
      ending('session', 'x', 'ann'),
    ]
    state.endings = [endings]
    await revocations.sweep()
    assert.deepEqual(await effects(), [['a'], []])
    state.endings = [[...endings, ending('user', 'ann', 'ann'), ending('api_key', 'a')]]
    await revocations.sweep()
    assert.deepEqual(await effects(), [['a', 'b'], []])
    state.endings = [endings]
    await revocations.sweep()
    assert.deepEqual(await effects(), [[], []], 'they were processed')
  })

  test('reads the endings of the last minute, page by page', async () => {
    const { revocations, state, ending, reads, effects, clock } = openRevocations()
    const now = clock.now()
    const page = Array.from({ length: PAGE_SIZE }, (_, n) =>
      ending('api_key', 'elsewhere', 'ann', now - PAGE_SIZE + n),
    )
    state.endings = [page, [ending('api_key', 'e')]]
    await revocations.sweep()
    assert.deepEqual(reads, [
      [now - SWEEP_WINDOW_MS, null],
      [now - 1, page.at(-1)!.id],
    ])
    assert.deepEqual(await effects(), [['e'], []])
  })

  test('processes the endings before a page that could not be read with the next sweep', async () => {
    const { revocations, state, ending, effects } = openRevocations()
    const page = Array.from({ length: PAGE_SIZE }, (_, n) =>
      ending('api_key', n === 0 ? 'a' : 'elsewhere', 'ann'),
    )
    state.endings = [page, new Error('the database is down')]
    await revocations.sweep()
    assert.deepEqual(await effects(), [[], []])
    state.endings = [page, [ending('api_key', 'e')]]
    await revocations.sweep()
    assert.deepEqual(await effects(), [['a', 'e'], []])
  })

  test('keeps only the ids of the endings that the last sweep read', async () => {
    const { revocations, state, ending, effects } = openRevocations()
    const first = ending('api_key', 'a')
    for (const [endings, loaded] of [
      [[first], ['a']],
      [[first], []],
      [[], []],
      [[first], ['a']],
    ]) {
      state.endings = [endings as Ending[]]
      await revocations.sweep()
      assert.deepEqual(await effects(), [loaded, []])
    }
  })

  test('makes the node fresh from when it began, and not if it fails; concurrent ones are one', async () => {
    const { revocations, state, reads, freshness, clock } = openRevocations()
    state.endings = [new Error('the database is down')]
    await revocations.sweep()
    assert.equal(freshness.lastPollAt, null)
    const startedAt = clock.now()
    const sweeps = [revocations.sweep(), revocations.sweep()]
    clock.advance(500)
    await Promise.all(sweeps)
    assert.deepEqual([freshness.lastPollAt, reads.length], [startedAt, 2])
    await revocations.sweep()
    assert.deepEqual([freshness.lastPollAt, reads.length], [startedAt + 500, 3])
  })
})
