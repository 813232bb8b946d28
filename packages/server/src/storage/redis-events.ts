import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { createClient } from '@redis/client'
import type { Event } from '../events.ts'
import { type CarrierDeps, channelOf, type EventCarrier, SEALED_CHANNEL } from './event-carrier.ts'
import { createEventReceiver, type TestEvent } from './event-receiver.ts'
import { createEventSeal, MAX_SEALED_BYTES } from './event-seal.ts'
import { createListeners } from './listeners.ts'
import { hintsAmong, UNSEALED_CHANNEL } from './unsealed-hints.ts'

/** Interval of test events. If one has not arrived when the next is due, the connection counts as broken. */
const TEST_EVERY_MS = 5000
const CONNECT_TIMEOUT_MS = 2000
const MAX_BACKOFF_MS = 5000
/** How long the start waits for Redis; then the node starts without it, since the sweep needs no events. */
const PATIENCE_MS = 2000

/**
 * Events by PUBLISH and SUBSCRIBE of Redis or Valkey, on two connections. Redis stores no events: after an outage nodes
 * get `events.gap` and read the store again. Nodes keep serving without Redis.
 */
export function createRedisEvents(deps: CarrierDeps & { url: string }): EventCarrier {
  const { url, log, secrets, time } = deps
  const { subscribe, deliver } = createListeners(log)
  const seal = createEventSeal({
    secrets,
    channel: SEALED_CHANNEL,
    maxPartBytes: MAX_SEALED_BYTES,
    now: time.now,
  })
  const receiver = createEventReceiver({ seal, log, deliver, receiveTest })
  let ownChannel: string | null = null
  let unsealed = false
  let connections = connect()
  let listening = false
  let listenedBefore = false
  let expected: string | null = null
  let sentAt = 0
  let lagMs: number | undefined
  let timer: NodeJS.Timeout | undefined

  return {
    subscribe,
    publish: (event, to) => (to ? sendTo(event, to) : send(event)),
    async follow(nodeId) {
      ownChannel = channelOf(nodeId)
      await followOwn(connections)
    },
    expectUnsealed(isListed) {
      if (isListed === unsealed) return
      unsealed = isListed
      followUnsealed(connections)
    },
    async start() {
      timer = setInterval(() => void test(), TEST_EVERY_MS).unref()
      await time.synchronize()
      for (let waited = 0; !listening && waited < PATIENCE_MS; waited += 20) await wait(20)
      if (!listening) log.warn({}, 'Redis cannot be reached; revocations are found by the sweep until it is')
    },
    async stop() {
      clearInterval(timer)
      receiver.stop()
      disconnect(connections)
    },
    health: () => ({ listening, lagMs: listening ? lagMs : undefined, ...counts() }),
  }

  function counts() {
    return { received: receiver.received, rejected: receiver.rejected }
  }

  function connect(): Connections {
    const publisher = makeClient(url)
    const subscriber = makeClient(url)
    const made = { publisher, subscriber, isSubscribed: false }
    publisher.on('error', () => {}) // detected by the next test event
    publisher.on('ready', () => void test())
    subscriber.on('error', error => lose(error))
    // At first emitted before SUBSCRIBE was sent; after a reconnection, when the client has subscribed again.
    subscriber.on('ready', () => {
      if (unsealed) followUnsealed(made)
      void test()
    })
    publisher.connect().catch(() => {})
    subscriber
      .connect()
      .then(() => subscriber.subscribe(SEALED_CHANNEL, receiver.receive, true))
      .then(() => {
        made.isSubscribed = true
        followUnsealed(made)
        return followOwn(made)
      })
      .then(test)
      .catch(() => {})
    return made
  }

  /** Once subscribed, the client subscribes again after each reconnection. */
  async function followOwn({ subscriber, isSubscribed }: Connections): Promise<void> {
    if (!isSubscribed || !ownChannel) return
    await subscriber.subscribe(ownChannel, receiver.receive, true).catch(lose)
  }

  /** Reads the channel of the previous minor version while one is listed. */
  function followUnsealed({ subscriber, isSubscribed }: Connections): void {
    if (!isSubscribed) return
    const changed = unsealed
      ? subscriber.subscribe(UNSEALED_CHANNEL, receiver.receiveUnsealed)
      : subscriber.unsubscribe(UNSEALED_CHANNEL)
    changed.catch(error => lose(error))
  }

  async function send(event: Event | TestEvent): Promise<void> {
    const { publisher } = connections
    for (const part of seal.seal(event)) await publisher.publish(SEALED_CHANNEL, part)
    if (!unsealed) return
    for (const hint of hintsAmong([event as Event]))
      await publisher.publish(UNSEALED_CHANNEL, JSON.stringify(hint))
  }

  /** In one MULTI, so that all target nodes receive it in the same order relative to other events. */
  async function sendTo(event: Event, to: readonly string[]): Promise<void> {
    const transaction = connections.publisher.multi()
    const parts = seal.seal(event)
    for (const nodeId of to) for (const part of parts) transaction.publish(channelOf(nodeId), part)
    await transaction.exec()
  }

  /** Sends a test event; if the previous one did not arrive, the connection delivers nothing. */
  async function test(): Promise<void> {
    if (expected !== null && performance.now() - sentAt >= TEST_EVERY_MS) {
      lose(new Error('a test event did not arrive'))
      disconnect(connections)
      connections = connect()
      return
    }
    const { publisher, subscriber, isSubscribed } = connections
    if (!publisher.isReady || !subscriber.isReady || !isSubscribed || expected !== null) return
    expected = randomUUID()
    sentAt = performance.now()
    await send({ type: 'events.test', id: expected }).catch(() => {})
    await time.synchronize().catch(() => {})
  }

  function receiveTest(id: string): void {
    if (id !== expected) return
    expected = null
    lagMs = performance.now() - sentAt
    if (listening) return
    listening = true
    if (listenedBefore) {
      log.info({}, 'events arrive again')
      deliver({ type: 'events.gap' })
    }
    listenedBefore = true
  }

  function lose(cause: Error): void {
    if (listening) log.warn({ error: cause.message }, 'events do not arrive; reconnecting')
    listening = false
    expected = null
  }
}

function makeClient(url: string) {
  return createClient({
    url,
    // A test event or hint sent late would be useless.
    disableOfflineQueue: true,
    socket: { connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: backoff },
  })
}

type Client = ReturnType<typeof makeClient>
interface Connections {
  publisher: Client
  subscriber: Client
  /** SUBSCRIBE was confirmed once; after a reconnection the client sends it again automatically. */
  isSubscribed: boolean
}

function disconnect({ publisher, subscriber }: Connections): void {
  for (const client of [publisher, subscriber]) {
    try {
      client.destroy()
    } catch {
      // Not connected: there is nothing to close.
    }
  }
}

function backoff(retries: number): number {
  return Math.min(MAX_BACKOFF_MS, 100 * 2 ** retries) * (0.5 + Math.random() / 2)
}
