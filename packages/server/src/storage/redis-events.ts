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
const TEST_INTERVAL_MS = 5000
const CONNECT_TIMEOUT_MS = 2000
const MAX_BACKOFF_MS = 5000
/** How long the start waits for Redis. Then the node starts without it, and learns of endings by the sweep alone. */
const START_TIMEOUT_MS = 2000

/**
 * Exchanges events by PUBLISH and SUBSCRIBE of Redis or Valkey, over two connections. Redis stores no events: after an
 * outage, listeners get `events.gap` and read the store again. Nodes keep serving without Redis.
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
  let receivesUnsealed = false
  let connections = connect()
  let isListening = false
  let hasListenedBefore = false
  let expectedTestId: string | null = null
  let testSentAt = 0
  let lagMs: number | undefined
  let timer: NodeJS.Timeout | undefined

  return {
    subscribe,
    publish: (event, to) => (to ? sendTo(event, to) : send(event)),
    async follow(nodeId) {
      ownChannel = channelOf(nodeId)
      await subscribeOwnChannel(connections)
    },
    expectUnsealed(isListed) {
      if (isListed === receivesUnsealed) return
      receivesUnsealed = isListed
      updateUnsealedSubscription(connections)
    },
    async start() {
      timer = setInterval(() => void sendTestEvent(), TEST_INTERVAL_MS).unref()
      await time.synchronize()
      for (let waited = 0; !isListening && waited < START_TIMEOUT_MS; waited += 20) await wait(20)
      if (!isListening)
        log.warn({}, 'Redis cannot be reached; revocations are found by the sweep until it is')
    },
    async stop() {
      clearInterval(timer)
      receiver.stop()
      disconnect(connections)
    },
    health: () => ({ listening: isListening, lagMs: isListening ? lagMs : undefined, ...eventCounts() }),
  }

  function eventCounts() {
    return { received: receiver.received, rejected: receiver.rejected }
  }

  function connect(): Connections {
    const publisher = makeClient(url)
    const subscriber = makeClient(url)
    const newConnections = { publisher, subscriber, isSubscribed: false }
    // The clients reconnect by themselves. Without the publisher this node's events do not reach the others, so its
    // errors are an outage too.
    for (const client of [publisher, subscriber]) client.on('error', recordOutage)
    publisher.on('ready', () => void sendTestEvent())
    // The first `ready` is emitted before SUBSCRIBE is sent; each later one, after a reconnection, once the client has
    // subscribed again.
    subscriber.on('ready', () => {
      if (receivesUnsealed) updateUnsealedSubscription(newConnections)
      void sendTestEvent()
    })
    publisher.connect().catch(() => {})
    subscriber
      .connect()
      .then(() => subscriber.subscribe(SEALED_CHANNEL, receiver.receive, true))
      .then(() => {
        newConnections.isSubscribed = true
        updateUnsealedSubscription(newConnections)
        return subscribeOwnChannel(newConnections)
      })
      .then(sendTestEvent)
      .catch(() => {})
    return newConnections
  }

  /** Subscribes to this node's channel. After each reconnection the client repeats its subscriptions by itself. */
  async function subscribeOwnChannel({ subscriber, isSubscribed }: Connections): Promise<void> {
    if (!isSubscribed || !ownChannel) return
    await subscriber.subscribe(ownChannel, receiver.receive, true).catch(recordOutage)
  }

  /** Subscribes to the channel of the previous minor version, or unsubscribes if no node of it exists. */
  function updateUnsealedSubscription({ subscriber, isSubscribed }: Connections): void {
    if (!isSubscribed) return
    const change = receivesUnsealed
      ? subscriber.subscribe(UNSEALED_CHANNEL, receiver.receiveUnsealed)
      : subscriber.unsubscribe(UNSEALED_CHANNEL)
    change.catch(error => recordOutage(error))
  }

  async function send(event: Event | TestEvent): Promise<void> {
    const { publisher } = connections
    for (const part of seal.seal(event)) await publisher.publish(SEALED_CHANNEL, part)
    if (!receivesUnsealed) return
    for (const hint of hintsAmong([event as Event]))
      await publisher.publish(UNSEALED_CHANNEL, JSON.stringify(hint))
  }

  /** Publishes in one MULTI, so that all target nodes receive the event in the same order relative to other events. */
  async function sendTo(event: Event, to: readonly string[]): Promise<void> {
    const transaction = connections.publisher.multi()
    const parts = seal.seal(event)
    for (const nodeId of to) for (const part of parts) transaction.publish(channelOf(nodeId), part)
    await transaction.exec()
  }

  /**
   * Sends a test event if both connections are ready. If the previous one did not arrive, it opens new connections
   * instead, since the present ones deliver nothing.
   */
  async function sendTestEvent(): Promise<void> {
    if (expectedTestId !== null && performance.now() - testSentAt >= TEST_INTERVAL_MS) {
      recordOutage(new Error('a test event did not arrive'))
      disconnect(connections)
      connections = connect()
      return
    }
    const { publisher, subscriber, isSubscribed } = connections
    if (!publisher.isReady || !subscriber.isReady || !isSubscribed || expectedTestId !== null) return
    expectedTestId = randomUUID()
    testSentAt = performance.now()
    await send({ type: 'events.test', id: expectedTestId }).catch(() => {})
    await time.synchronize().catch(() => {})
  }

  function receiveTest(id: string): void {
    if (id !== expectedTestId) return
    expectedTestId = null
    lagMs = performance.now() - testSentAt
    if (isListening) return
    isListening = true
    if (hasListenedBefore) {
      log.info({}, 'events arrive again')
      deliver({ type: 'events.gap' })
    }
    hasListenedBefore = true
  }

  /** Records an outage of events, which lasts until a test event arrives. */
  function recordOutage(cause: Error): void {
    if (isListening) log.warn({ error: cause.message }, 'events do not arrive; reconnecting')
    isListening = false
    expectedTestId = null
  }
}

function makeClient(url: string) {
  return createClient({
    url,
    // While disconnected, events are refused instead of queued: after a long outage they would be too old to be
    // accepted.
    disableOfflineQueue: true,
    socket: { connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: backoffDelay },
  })
}

type Client = ReturnType<typeof makeClient>
interface Connections {
  publisher: Client
  subscriber: Client
  /** Whether SUBSCRIBE was confirmed; after a reconnection the client sends it again by itself. */
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

function backoffDelay(retries: number): number {
  return Math.min(MAX_BACKOFF_MS, 100 * 2 ** retries) * (0.5 + Math.random() / 2)
}
