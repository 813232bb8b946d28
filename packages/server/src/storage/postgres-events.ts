import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Event } from '../events.ts'
import { CannotStart } from '../operator-error.ts'
import { type CarrierDeps, channelOf, type EventCarrier, SEALED_CHANNEL } from './event-carrier.ts'
import { createEventReceiver, type TestEvent } from './event-receiver.ts'
import { createEventSeal } from './event-seal.ts'
import { createListeners } from './listeners.ts'
import { connectionOptions } from './postgres-connections.ts'
import { describeError } from './postgres-errors.ts'
import { hintsAmong, UNSEALED_CHANNEL } from './unsealed-hints.ts'

/** A notification of PostgreSQL has less than 8000 bytes of text; base64url encodes three bytes as four characters. */
const MAX_PART_BYTES = 5_990
const TEST_EVERY_MS = 5000
const MAX_BACKOFF_MS = 5000
const NOTIFY_EACH =
  'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as each (channel, payload)'
/**
 * As NOTIFY_EACH, in a transaction of its own that does not wait for the disk or a standby: notifications do not
 * survive a crash of the database anyway.
 */
const NOTIFY_EACH_NOW = `with asynchronous as materialized (select set_config('synchronous_commit', 'off', true))
  select pg_notify(channel, payload) from asynchronous, unnest($1::text[], $2::text[]) as each (channel, payload)`
const NO_LISTEN =
  'This database has no LISTEN, by which nodes exchange events. Let Redis or Valkey carry the events: KEYWAY_EVENTS_URL=redis://redis.example.com:6379'
/** The header of the previous minor version's notifications, `<id>:<index>:<count>:`, for a single part. */
const UNSEALED_HEAD = /^[0-9a-f-]{36}:0:1:/
const UNSEALED_HEAD_CHARACTERS = 41

/**
 * Events by LISTEN and NOTIFY, received over a dedicated connection. Test events check that it works, since a pooler
 * may accept LISTEN and deliver nothing; if one does not arrive, it reconnects. After a gap, listeners get `events.gap`
 * and read the store again.
 *
 * @param deps.url null: only publishes, since another carrier delivers the events
 */
export function createPostgresEvents(
  deps: CarrierDeps & {
    url: string | null
    /** Runs a statement on the pool. */
    execute(sql: string, parameters: readonly unknown[]): Promise<unknown>
  },
): EventCarrier {
  const { url, log, secrets, time } = deps
  const { subscribe, deliver } = createListeners(log)
  const seal = createEventSeal({
    secrets,
    channel: SEALED_CHANNEL,
    maxPartBytes: MAX_PART_BYTES,
    now: time.now,
  })
  const receiver = createEventReceiver({ seal, log, deliver, receiveTest })
  let client: pg.Client | null = null
  let ownChannel: string | null = null
  let unsealed = false
  let stopped = false
  let failures = 0
  let timer: NodeJS.Timeout | undefined
  let expected: string | null = null
  let sentAt = 0
  let lagMs: number | undefined

  return {
    subscribe,
    notification,
    publish: send,
    async follow(nodeId) {
      ownChannel = channelOf(nodeId)
      await client?.query(`listen ${ownChannel}`)
    },
    expectUnsealed(isListed) {
      if (isListed === unsealed) return
      unsealed = isListed
      const current = client
      const statement = `${isListed ? 'listen' : 'unlisten'} ${UNSEALED_CHANNEL}`
      current?.query(statement).catch(error => lose(current, error))
    },
    async start() {
      if (url) await Promise.all([connect(url), time.synchronize()])
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      receiver.stop()
      const last = client
      client = null
      await last?.end().catch(() => {})
    },
    health: () => ({
      listening: client !== null,
      lagMs: client ? lagMs : undefined,
      received: receiver.received,
      rejected: receiver.rejected,
    }),
  }

  /** One statement that publishes all these events; inside a transaction, when that commits. */
  function notification(events: readonly (Event | TestEvent)[]) {
    const parts = events.flatMap(event => seal.seal(event)).map(part => part.toString('base64url'))
    const hints = unsealed ? hintsAmong(events as readonly Event[]) : []
    const channels = [...parts.map(() => SEALED_CHANNEL), ...hints.map(() => UNSEALED_CHANNEL)]
    const payloads = [...parts, ...hints.map(hint => `${randomUUID()}:0:1:${JSON.stringify(hint)}`)]
    return { sql: NOTIFY_EACH, parameters: [channels, payloads] }
  }

  async function connect(to: string): Promise<void> {
    const next = new pg.Client(connectionOptions(to))
    next.on('error', error => lose(next, error))
    next.on('end', () => lose(next, new Error('the connection ended')))
    next.on('notification', receive)
    try {
      await next.connect()
      await next.query(`listen ${SEALED_CHANNEL}`)
      if (ownChannel) await next.query(`listen ${ownChannel}`)
      if (unsealed) await next.query(`listen ${UNSEALED_CHANNEL}`)
    } catch (error) {
      next.end().catch(() => {})
      throw isUnknownStatement(error) ? new CannotStart(NO_LISTEN) : error
    }
    if (stopped) return void next.end().catch(() => {})
    client = next
    failures = 0
    expected = null
    schedule(test, TEST_EVERY_MS)
  }

  function receive({ channel, payload = '' }: pg.Notification): void {
    if (channel === SEALED_CHANNEL || channel === ownChannel)
      receiver.receive(Buffer.from(payload, 'base64url'))
    else if (unsealed) receiver.receiveUnsealed(withoutHead(payload))
  }

  function receiveTest(id: string): void {
    if (id !== expected) return
    expected = null
    lagMs = performance.now() - sentAt
  }

  async function send(event: Event | TestEvent, to?: readonly string[]): Promise<void> {
    const { parameters } = to ? notificationTo(event, to) : notification([event])
    await deps.execute(NOTIFY_EACH_NOW, parameters)
  }

  /**
   * Sealed once for all target nodes, and published by one statement, so that all receive it in the same order relative
   * to other events.
   */
  function notificationTo(event: Event | TestEvent, to: readonly string[]) {
    const parts = seal.seal(event).map(part => part.toString('base64url'))
    const channels = to.flatMap(nodeId => parts.map(() => channelOf(nodeId)))
    return { parameters: [channels, to.flatMap(() => parts)] }
  }

  /** Sends a test event; reconnects if the previous one did not arrive. */
  async function test(): Promise<void> {
    const tested = client
    if (!tested) return
    if (expected !== null) return lose(tested, new Error('a test event did not arrive'))
    expected = randomUUID()
    sentAt = performance.now()
    // Sent over the pool, as events are. If the pool fails, that says nothing about this connection.
    await send({ type: 'events.test', id: expected }).catch(() => {
      expected = null
    })
    await time.synchronize().catch(() => {})
    if (client === tested) schedule(test, TEST_EVERY_MS)
  }

  function lose(lost: pg.Client, cause: Error): void {
    if (stopped || client !== lost) return
    client = null
    log.warn({ error: describeError(cause) }, 'events do not arrive; reconnecting')
    lost.end().catch(() => {})
    schedule(reconnect, 0)
  }

  async function reconnect(): Promise<void> {
    try {
      await connect(url!)
      deliver({ type: 'events.gap' })
      log.info({}, 'events arrive again')
    } catch {
      failures++
      schedule(reconnect, Math.min(MAX_BACKOFF_MS, 100 * 2 ** failures) * (0.5 + Math.random() / 2))
    }
  }

  function schedule(step: () => Promise<void>, ms: number): void {
    if (stopped) return
    clearTimeout(timer)
    timer = setTimeout(() => void step(), ms)
  }
}

function withoutHead(payload: string): string {
  return UNSEALED_HEAD.test(payload) ? payload.slice(UNSEALED_HEAD_CHARACTERS) : ''
}

/** feature_not_supported, syntax_error: a database that speaks PostgreSQL's protocol, but not all of its SQL. */
function isUnknownStatement(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '0A000' || error.code === '42601')
}
