import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { ClientCheck } from './check.ts'
import { refusal } from './scripted-hub.ts'

/** Tolerance for timers that fire early. */
const EARLY_MS = 50
/** How long to wait for a violation, before its absence counts as a success. */
const VIOLATION_WAIT_MS = 2_000

export const timeChecks: ClientCheck[] = [
  {
    section: '1',
    promise: 'the key is exchanged once, and the token opens the hub, as header or as subprotocol',
    async run({ hub }) {
      const connection = await hub.arrived()
      assert.equal(connection.token, 'token-1')
      assert.equal(hub.exchanges.length, 1)
      connection.ready()
      await connection.works()
    },
  },
  {
    section: '1',
    promise: 'nothing but ping is sent before ready',
    async run({ hub }) {
      const connection = await hub.arrived()
      await wait(500)
      connection.ready()
      await connection.works()
    },
  },
  {
    section: '1',
    promise: 'a handshake that is redirected is not followed',
    prepare(hub) {
      hub.redirect = '/elsewhere'
    },
    async run({ hub }) {
      await hub.exchanged.next()
      await wait(VIOLATION_WAIT_MS)
      hub.redirect = null
      await (await hub.connected()).works()
    },
  },
  {
    section: '2',
    promise: 'unknown frames and fields are skipped',
    async run({ hub }) {
      const connection = await hub.connected({ later: { version: 2 } })
      connection.send({ type: 'dance', steps: [1, 2, 3] })
      connection.message('a', { text: 'hello', list: [null, 1.5, 'ü'] }, { later: true })
      const frame = await connection.echoes(
        { text: 'hello', list: [null, 1.5, 'ü'] },
        { acknowledges: false },
      )
      connection.send({ type: 'sent', id: frame.id!, delivered: 1, held: 0, later: 1 })
      connection.send({ type: 'error', code: 'later', detail: 'An error that does not exist yet.' })
      await connection.works()
    },
  },
  {
    section: '4',
    promise: 'the token is renewed in place at 70 to 80 % of expires_in, whatever the date says',
    prepare(hub) {
      hub.answer = count => hub.token(count, 4)
    },
    async run({ hub }) {
      const connection = await hub.connected({ expires_in: 4 })
      const { token } = await connection.next('token')
      const renewedAfterMs = performance.now() - connection.arrivedAt
      assert.equal(token, 'token-2')
      assert.ok(renewedAfterMs >= 0.7 * 4_000 - EARLY_MS, `renewed after ${renewedAfterMs} ms of 4000`)
      connection.send({ type: 'token_accepted', expires_at: '2000-01-01T00:00:00.000Z', expires_in: 900 })
      await connection.works()
      assert.equal(hub.connectionCount, 1)
    },
  },
  {
    section: '4',
    promise: 'messages go on during a slow renewal, and the slow token is used',
    async run({ hub }) {
      const connection = await hub.connected({ expires_in: 4 })
      hub.answer = count => ({ ...hub.token(count), delayMs: 1_500 })
      await hub.exchanged.next()
      await hub.exchanged.next()
      await connection.works('during the exchange')
      assert.equal((await connection.next('token')).token, 'token-2')
      assert.equal(hub.connectionCount, 1)
    },
  },
  {
    section: '4',
    promise: 'a renewal that failed is tried again with back-off, on the same connection',
    async run({ hub }) {
      const connection = await hub.connected({ expires_in: 10 })
      hub.answer = count => (count === 2 ? refusal(503, 'unavailable') : hub.token(count))
      assert.equal((await connection.next('token', 20_000)).token, 'token-3')
      assert.equal(hub.connectionCount, 1)
    },
  },
  {
    section: '4',
    promise: 'after 429 of a renewal’s exchange the client waits for Retry-After, on the same connection',
    async run({ hub }) {
      const connection = await hub.connected({ expires_in: 20 })
      hub.answer = count => (count === 2 ? refusal(429, 'rate_limited', 6) : hub.token(count))
      connection.send({ type: 'token_expiring', expires_at: '2030-01-01T00:00:00.000Z', expires_in: 20 })
      await hub.exchanged.next()
      await hub.exchanged.next()
      connection.send({ type: 'token_expiring', expires_at: '2030-01-01T00:00:00.000Z', expires_in: 15 })
      assert.equal((await connection.next('token', 20_000)).token, 'token-3')
      const [, refused, repeated] = hub.exchanges as [number, number, number]
      assert.ok(repeated - refused >= 6_000, `it was repeated after ${repeated - refused} ms`)
      assert.equal(hub.connectionCount, 1)
    },
  },
  {
    section: '4',
    promise:
      '`token_expiring` renews at once; an end that does not move is the key’s own, and causes no flood',
    async run({ hub }) {
      const connection = await hub.connected()
      const expiry = { expires_at: '2030-01-01T00:00:00.000Z', expires_in: 4 }
      connection.send({ type: 'token_expiring', ...expiry })
      await connection.next('token', 3_000)
      for (let n = 0; n < 5; n++) {
        connection.send({ type: 'token_accepted', ...expiry })
        connection.send({ type: 'token_expiring', ...expiry })
      }
      await wait(VIOLATION_WAIT_MS)
      assert.ok(hub.exchanges.length <= 4, `${hub.exchanges.length} exchanges`)
    },
  },
  {
    section: '4',
    promise: 'a half-open connection is noticed within 35 s, and another one opened',
    async run({ hub }) {
      const connection = await hub.connected({ heartbeat_seconds: 1 })
      await connection.works()
      connection.fallSilent()
      const nextConnection = await hub.arrived(36_000)
      nextConnection.ready()
      await nextConnection.works()
    },
  },
]
