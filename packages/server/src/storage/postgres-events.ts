import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Event } from '../events.ts'
import type { Log } from '../log.ts'
import { CannotStart } from './cannot-start.ts'
import type { EventCarrier } from './event-carrier.ts'
import { createListeners } from './listeners.ts'
import { connectionOptions } from './postgres.ts'
import { describeError } from './postgres-errors.ts'

const CHANNEL = 'keyway'
/** PostgreSQL takes less than 8000 bytes; the head of a part needs about 50. */
const MAX_PART_BYTES = 7000
const TEST_EVERY_MS = 5000
const MAX_BACKOFF_MS = 5000
const NO_LISTEN =
  'This database has no LISTEN, by which nodes hear each other. Let Redis or Valkey carry the events: KEYWAY_EVENTS_URL=redis://redis.example.com:6379'

/** One statement that notifies of all these events; inside a transaction it does so when that commits. */
function notification(events: readonly Event[]): { sql: string; parameters: [string[]] } {
  const parts = events.flatMap(event => toParts(JSON.stringify(event)))
  return { sql: `select pg_notify('${CHANNEL}', part) from unnest($1::text[]) part`, parameters: [parts] }
}

/** `<id>:<index>:<count>:<base64url or JSON>`. A text of one part is sent as it is. */
function toParts(text: string): string[] {
  const bytes = Buffer.from(text)
  const id = randomUUID()
  if (bytes.length <= MAX_PART_BYTES) return [`${id}:0:1:${text}`]
  const encoded = bytes.toString('base64url')
  const count = Math.ceil(encoded.length / MAX_PART_BYTES)
  return Array.from(
    { length: count },
    (_, index) =>
      `${id}:${index}:${count}:${encoded.slice(index * MAX_PART_BYTES, (index + 1) * MAX_PART_BYTES)}`,
  )
}

/** Puts parts together. Those of one event come in a row, because one transaction sent them. */
function createAssembler(): (payload: string) => unknown {
  let current = { id: '', text: '', next: 0 }
  return payload => {
    const match = /^([^:]+):(\d+):(\d+):/.exec(payload)
    if (!match) return undefined
    const [head, id = '', index, count] = match
    const text = payload.slice(head.length)
    if (count === '1') return JSON.parse(text)
    if (index === '0') current = { id, text: '', next: 0 }
    if (current.id !== id || current.next !== Number(index)) return undefined
    current.text += text
    current.next++
    if (current.next < Number(count)) return undefined
    return JSON.parse(Buffer.from(current.text, 'base64url').toString())
  }
}

/**
 * Events by LISTEN and NOTIFY, over one connection of their own. It listens to itself: a pooler in between
 * accepts LISTEN and delivers nothing, so a test event that is not heard means deaf, and a new connection.
 * After every time without ears listeners get `events.gap` and ask the store again.
 *
 * @param deps.url null: no listening here (another carrier brings the events)
 */
export function createPostgresEvents(deps: {
  url: string | null
  log: Log
  /** Runs a statement on the pool. */
  execute(sql: string, parameters: readonly unknown[]): Promise<unknown>
}): EventCarrier {
  const { url, log } = deps
  const { subscribe, deliver } = createListeners(log)
  let client: pg.Client | null = null
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
    async start() {
      if (url) await connect(url)
    },
    async stop() {
      stopped = true
      clearTimeout(timer)
      const last = client
      client = null
      await last?.end().catch(() => {})
    },
    health: () => ({ listening: client !== null, lagMs: client ? lagMs : undefined }),
  }

  async function connect(to: string): Promise<void> {
    const next = new pg.Client(connectionOptions(to))
    const assemble = createAssembler()
    next.on('error', error => lose(next, error))
    next.on('end', () => lose(next, new Error('the connection ended')))
    next.on('notification', message => hear(assemble(message.payload ?? '')))
    try {
      await next.connect()
      await next.query(`listen ${CHANNEL}`)
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

  function hear(message: unknown): void {
    const heard = message as Event | { type: 'events.test'; id: string } | undefined
    if (!heard) return
    if (heard.type === 'events.test') {
      if (heard.id === expected) {
        expected = null
        lagMs = performance.now() - sentAt
      }
      return
    }
    deliver(heard)
  }

  async function send(event: Event): Promise<void> {
    const { sql, parameters } = notification([event])
    await deps.execute(sql, parameters)
  }

  /** Sends the next test event, unless the one before was not heard. */
  async function test(): Promise<void> {
    const tested = client
    if (!tested) return
    if (expected !== null) return lose(tested, new Error('a test event was not heard'))
    expected = randomUUID()
    sentAt = performance.now()
    const event = { type: 'events.test', id: expected }
    // Sent over the pool, where events come from; a pool that is away is not the listener's fault.
    await send(event as unknown as Event).catch(() => {
      expected = null
    })
    if (client === tested) schedule(test, TEST_EVERY_MS)
  }

  function lose(lost: pg.Client, cause: Error): void {
    if (stopped || client !== lost) return
    client = null
    log.warn({ error: describeError(cause) }, 'events are not heard; connecting anew')
    lost.end().catch(() => {})
    schedule(reconnect, 0)
  }

  async function reconnect(): Promise<void> {
    try {
      await connect(url!)
      deliver({ type: 'events.gap' })
      log.info({}, 'events are heard again')
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

/** feature_not_supported, syntax_error: an engine that speaks the protocol and not all of the language. */
function isUnknownStatement(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '0A000' || error.code === '42601')
}
