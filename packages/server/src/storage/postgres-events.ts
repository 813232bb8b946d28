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

/** The text of a notification has less than 8000 bytes; base64url encodes three bytes as four characters. */
const MAX_PART_BYTES = 5_990
const TEST_INTERVAL_MS = 5000
const MAX_BACKOFF_MS = 5000
const NOTIFY_EACH =
  'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as each (channel, payload)'
/**
 * Like NOTIFY_EACH, for a separate transaction, which does not wait for the disk or a standby: notifications do not
 * survive a crash of the database anyway.
 */
const NOTIFY_EACH_NOW = `with asynchronous as materialized (select set_config('synchronous_commit', 'off', true))
  select pg_notify(channel, payload) from asynchronous, unnest($1::text[], $2::text[]) as each (channel, payload)`
const NO_LISTEN_MESSAGE =
  'This database has no LISTEN, by which nodes exchange events. Let Redis or Valkey carry the events: KEYWAY_EVENTS_URL=redis://redis.example.com:6379'
/** The header `<id>:<index>:<count>:` of the previous minor version's notifications, if the event has a single part. */
const UNSEALED_HEADER = /^[0-9a-f-]{36}:0:1:/
const UNSEALED_HEADER_LENGTH = 41

/**
 * Exchanges events by LISTEN and NOTIFY, and receives them over a dedicated connection. Test events check that events
 * arrive, since a pooler may accept LISTEN and deliver nothing. If a test event does not arrive or the connection
 * breaks, a new connection is opened. After that, listeners get `events.gap`, and read the store again.
 *
 * @param deps.url null in a process that only publishes events; then no connection for receiving is opened
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
  let receivesUnsealed = false
  let isStopped = false
  let failureCount = 0
  let timer: NodeJS.Timeout | undefined
  let expectedTestId: string | null = null
  let testSentAt = 0
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
      if (isListed === receivesUnsealed) return
      receivesUnsealed = isListed
      const listeningClient = client
      const statement = `${isListed ? 'listen' : 'unlisten'} ${UNSEALED_CHANNEL}`
      listeningClient?.query(statement).catch(error => replaceConnection(listeningClient, error))
    },
    async start() {
      if (url) await Promise.all([connect(url), time.synchronize()])
    },
    async stop() {
      isStopped = true
      clearTimeout(timer)
      receiver.stop()
      const lastClient = client
      client = null
      await lastClient?.end().catch(() => {})
    },
    health: () => ({
      listening: client !== null,
      lagMs: client ? lagMs : undefined,
      received: receiver.received,
      rejected: receiver.rejected,
    }),
  }

  /** The statement that publishes all these events; in a transaction, they are published by its commit. */
  function notification(events: readonly (Event | TestEvent)[]) {
    const parts = events.flatMap(event => seal.seal(event)).map(part => part.toString('base64url'))
    const hints = receivesUnsealed ? hintsAmong(events as readonly Event[]) : []
    const channels = [...parts.map(() => SEALED_CHANNEL), ...hints.map(() => UNSEALED_CHANNEL)]
    const payloads = [...parts, ...hints.map(hint => `${randomUUID()}:0:1:${JSON.stringify(hint)}`)]
    return { sql: NOTIFY_EACH, parameters: [channels, payloads] }
  }

  async function connect(databaseUrl: string): Promise<void> {
    const newClient = new pg.Client(connectionOptions(databaseUrl))
    newClient.on('error', error => replaceConnection(newClient, error))
    newClient.on('end', () => replaceConnection(newClient, new Error('the connection ended')))
    newClient.on('notification', receive)
    try {
      await newClient.connect()
      await newClient.query(`listen ${SEALED_CHANNEL}`)
      if (ownChannel) await newClient.query(`listen ${ownChannel}`)
      if (receivesUnsealed) await newClient.query(`listen ${UNSEALED_CHANNEL}`)
    } catch (error) {
      newClient.end().catch(() => {})
      throw isUnknownStatement(error) ? new CannotStart(NO_LISTEN_MESSAGE) : error
    }
    if (isStopped) return void newClient.end().catch(() => {})
    client = newClient
    failureCount = 0
    expectedTestId = null
    schedule(sendTestEvent, TEST_INTERVAL_MS)
  }

  function receive({ channel, payload = '' }: pg.Notification): void {
    if (channel === SEALED_CHANNEL || channel === ownChannel)
      receiver.receive(Buffer.from(payload, 'base64url'))
    else if (receivesUnsealed) receiver.receiveUnsealed(stripUnsealedHeader(payload))
  }

  function receiveTest(id: string): void {
    if (id !== expectedTestId) return
    expectedTestId = null
    lagMs = performance.now() - testSentAt
  }

  async function send(event: Event | TestEvent, to?: readonly string[]): Promise<void> {
    const { parameters } = to ? notificationTo(event, to) : notification([event])
    await deps.execute(NOTIFY_EACH_NOW, parameters)
  }

  /**
   * Like `notification`, for some nodes. The event is sealed once, and published to all of them by one statement, so
   * that they receive it in the same order relative to other events.
   */
  function notificationTo(event: Event | TestEvent, to: readonly string[]) {
    const parts = seal.seal(event).map(part => part.toString('base64url'))
    const channels = to.flatMap(nodeId => parts.map(() => channelOf(nodeId)))
    return { parameters: [channels, to.flatMap(() => parts)] }
  }

  /** Sends a test event, or reconnects if the previous one did not arrive. */
  async function sendTestEvent(): Promise<void> {
    const testedClient = client
    if (!testedClient) return
    if (expectedTestId !== null)
      return replaceConnection(testedClient, new Error('a test event did not arrive'))
    expectedTestId = randomUUID()
    testSentAt = performance.now()
    // Sent over the pool, as events are. If the pool fails, that says nothing about this connection.
    await send({ type: 'events.test', id: expectedTestId }).catch(() => {
      expectedTestId = null
    })
    await time.synchronize().catch(() => {})
    if (client === testedClient) schedule(sendTestEvent, TEST_INTERVAL_MS)
  }

  /** Closes a connection that broke or delivers nothing, and reconnects. */
  function replaceConnection(broken: pg.Client, cause: Error): void {
    if (isStopped || client !== broken) return
    client = null
    log.warn({ error: describeError(cause) }, 'events do not arrive; reconnecting')
    broken.end().catch(() => {})
    schedule(reconnect, 0)
  }

  async function reconnect(): Promise<void> {
    try {
      await connect(url!)
      deliver({ type: 'events.gap' })
      log.info({}, 'events arrive again')
    } catch {
      failureCount++
      schedule(reconnect, Math.min(MAX_BACKOFF_MS, 100 * 2 ** failureCount) * (0.5 + Math.random() / 2))
    }
  }

  function schedule(step: () => Promise<void>, ms: number): void {
    if (isStopped) return
    clearTimeout(timer)
    timer = setTimeout(() => void step(), ms)
  }
}

function stripUnsealedHeader(payload: string): string {
  return UNSEALED_HEADER.test(payload) ? payload.slice(UNSEALED_HEADER_LENGTH) : ''
}

/** feature_not_supported or syntax_error, from a database that speaks PostgreSQL's protocol, but not all of its SQL. */
function isUnknownStatement(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '0A000' || error.code === '42601')
}
