import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { ClientCheck } from './check.ts'
import { refusal } from './scripted-hub.ts'

/** How long to wait for a violation, before its absence counts as a success. */
const VIOLATION_WAIT_MS = 1_000

const FINAL_CLOSES = [
  [1009, ''],
  [4400, 'bad_message'],
  [4403, 'insufficient_scope'],
  [4403, 'account_suspended'],
  [4403, 'network_not_allowed'],
  [4410, 'revoked'],
  [4410, ''],
] as const

const FINAL_REFUSALS = [
  [401, 'invalid_api_key'],
  [401, 'api_key_revoked'],
  [401, 'api_key_expired'],
  [403, 'account_suspended'],
  [403, 'insufficient_scope'],
  [403, 'network_not_allowed'],
] as const

const RECONNECT_CLOSES = [
  [1001, 'going_away'],
  [1012, 'restarting'],
  [1011, 'internal'],
  [1013, 'try_again_later'],
  [4429, 'rate_limited'],
  [4429, 'too_many_connections'],
  [4999, 'a code of later'],
] as const

const finalCloseChecks: ClientCheck[] = FINAL_CLOSES.map(([code, reason]) => ({
  section: '5',
  promise: `after ${code} ${reason || 'without a reason'} the client stops for good and does not reconnect`,
  async run({ hub, program }) {
    const connection = await hub.connected()
    await connection.works()
    hub.expectsNoReturn()
    connection.close(code, reason)
    await program.stopsForGood()
    await wait(VIOLATION_WAIT_MS)
  },
}))

const finalRefusalChecks: ClientCheck[] = FINAL_REFUSALS.map(([status, code]) => ({
  section: '4',
  promise: `after the exchange was refused with ${status} ${code} the client stops for good`,
  prepare(hub) {
    hub.answer = () => refusal(status, code)
    hub.maxCounts = { exchanges: 1, connections: 0 }
  },
  async run({ program }) {
    await program.stopsForGood()
  },
}))

const reconnectChecks: ClientCheck[] = RECONNECT_CLOSES.map(([code, reason]) => ({
  section: '5',
  promise: `after ${code} ${reason} the client reconnects`,
  async run({ hub }) {
    const connection = await hub.connected()
    await connection.works()
    connection.close(code, reason)
    await (await hub.connected()).works()
  },
}))

const exchangeChecks: ClientCheck[] = (
  [
    [4401, 'invalid_token'],
    [4408, 'token_expired'],
  ] as const
).map(([code, reason]) => ({
  section: '5',
  promise: `after ${code} ${reason} the client exchanges its key again, then connects`,
  async run({ hub }) {
    const connection = await hub.connected()
    connection.close(code, reason)
    assert.equal((await hub.arrived()).token, 'token-2')
  },
}))

export const endingChecks: ClientCheck[] = [
  ...finalRefusalChecks,
  {
    section: '4',
    promise: 'after 429 of the exchange the client waits for Retry-After',
    prepare(hub) {
      hub.answer = count => (count === 1 ? refusal(429, 'rate_limited', 2) : hub.token(count))
    },
    async run({ hub }) {
      await (await hub.connected()).works()
      const [first, second] = hub.exchanges as [number, number]
      assert.ok(second - first >= 2_000, `it came back after ${second - first} ms`)
    },
  },
  {
    section: '4',
    promise: 'after 503, 500 and an answer that is no JSON of the exchange the client tries again',
    prepare(hub) {
      const failures = [
        refusal(503, 'unavailable'),
        refusal(500, 'internal_error'),
        { status: 502, body: {} },
      ]
      hub.answer = count => failures[count - 1] ?? hub.token(count)
    },
    async run({ hub }) {
      await (await hub.connected()).works()
      assert.equal(hub.exchanges.length, 4)
    },
  },
  ...finalCloseChecks,
  ...reconnectChecks,
  ...exchangeChecks,
  {
    section: '5',
    promise: 'after a connection that was lost the client reconnects, with the token while it is good',
    async run({ hub }) {
      const connection = await hub.connected()
      await connection.works()
      connection.cut()
      const nextConnection = await hub.connected()
      assert.equal(nextConnection.token, 'token-1')
      await nextConnection.works()
    },
  },
  {
    section: '5',
    promise: 'a close before ready is treated like one after it',
    async run({ hub, program }) {
      ;(await hub.arrived()).close(1013, 'try_again_later')
      ;(await hub.arrived()).close(4410, 'revoked')
      await program.stopsForGood()
    },
  },
]
