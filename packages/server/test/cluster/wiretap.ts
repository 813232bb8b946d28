import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { createClient } from '@redis/client'
import pg from 'pg'
import { channelOf } from '../../src/storage/event-carrier.ts'
import { withClient } from '../support/postgres.ts'

/** The channel of sealed events, and that of the previous minor version. */
const CHANNELS = ['keyway_sealed', 'keyway'] as const

export interface RecordedMessage {
  channel: string
  /** As transmitted: base64url on PostgreSQL, bytes on Redis. */
  payload: Buffer
}

/** An attacker who may listen and publish where nodes exchange events (PostgreSQL or Redis), but has no secret. */
export interface Wiretap {
  recorded: RecordedMessage[]
  /** Also records what is published on the channels of these nodes, each of which only its node listens to. */
  follow(nodeIds: readonly string[]): Promise<void>
  publish(messages: readonly RecordedMessage[]): Promise<void>
  /** Converts a payload to the sealed bytes in it; `encode` does the reverse. */
  decode(payload: Buffer): Buffer
  encode(bytes: Buffer): Buffer
}

/**
 * Connects to PostgreSQL with a role that owns nothing and may only connect. It cannot read the ids of the nodes, so
 * the test passes them to `follow`.
 */
export async function tapPostgres(t: TestContext, url: string): Promise<Wiretap> {
  const role = `stranger_${randomBytes(4).toString('hex')}`
  await withClient(url, owner => owner.query(`create role ${role} login`))
  const strangerUrl = new URL(url)
  strangerUrl.username = role
  const client = new pg.Client({ connectionString: strangerUrl.href })
  client.on('error', () => {}) // The database is dropped before the test ends, which breaks the connection.
  await client.connect()
  t.after(async () => {
    await client.end()
    // Roles belong to the cluster, and the test's database may have been dropped.
    await withClient(Object.assign(new URL(url), { pathname: '/postgres' }).href, owner =>
      owner.query(`drop role ${role}`),
    )
  })
  const recorded: RecordedMessage[] = []
  client.on('notification', ({ channel, payload = '' }) => {
    recorded.push({ channel, payload: Buffer.from(payload) })
  })
  for (const channel of CHANNELS) await client.query(`listen ${channel}`)
  return {
    recorded,
    async follow(nodeIds) {
      for (const nodeId of nodeIds) await client.query(`listen ${channelOf(nodeId)}`)
    },
    async publish(messages) {
      await client.query('select pg_notify(c, p) from unnest($1::text[], $2::text[]) as each (c, p)', [
        messages.map(({ channel }) => channel),
        messages.map(({ payload }) => payload.toString()),
      ])
    },
    decode: payload => Buffer.from(payload.toString(), 'base64url'),
    encode: bytes => Buffer.from(bytes.toString('base64url')),
  }
}

export async function tapRedis(t: TestContext, url: string): Promise<Wiretap> {
  const publisher = createClient({ url })
  const subscriber = createClient({ url })
  for (const client of [publisher, subscriber]) client.on('error', () => {})
  await Promise.all([publisher.connect(), subscriber.connect()])
  t.after(() => {
    publisher.destroy()
    subscriber.destroy()
  })
  const recorded: RecordedMessage[] = []
  await subscriber.pSubscribe(
    '*',
    (payload: Buffer, channel: Buffer) => {
      recorded.push({ channel: channel.toString(), payload })
    },
    true,
  )
  return {
    recorded,
    async follow() {},
    async publish(messages) {
      await Promise.all(messages.map(({ channel, payload }) => publisher.publish(channel, payload)))
    },
    decode: payload => payload,
    encode: bytes => bytes,
  }
}
