import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { createClient } from '@redis/client'
import type { Event } from '../events.ts'
import type { Log } from '../log.ts'
import type { EventCarrier } from './event-carrier.ts'
import { createListeners } from './listeners.ts'

const CHANNEL = 'keyway'
/** A test event that was not heard until the next one is due means deaf. */
const TEST_EVERY_MS = 5000
const CONNECT_TIMEOUT_MS = 2000
const MAX_BACKOFF_MS = 5000
/** Start waits this long for Redis and then goes on without: the sweep needs no events. */
const PATIENCE_MS = 2000

/**
 * Events by Redis or Valkey's PUBLISH and SUBSCRIBE, on two connections. Nothing is kept there: who was away
 * gets `events.gap` when it hears again, and asks the store. Redis being away stops nobody; it is only slower.
 */
export function createRedisEvents({ url, log }: { url: string; log: Log }): EventCarrier {
  const { subscribe, deliver } = createListeners(log)
  let connections = connect()
  let listening = false
  let heardBefore = false
  let expected: string | null = null
  let sentAt = 0
  let lagMs: number | undefined
  let timer: NodeJS.Timeout | undefined

  return {
    subscribe,
    async publish(event) {
      await send(JSON.stringify(event))
    },
    async start() {
      timer = setInterval(() => void test(), TEST_EVERY_MS).unref()
      for (let waited = 0; !listening && waited < PATIENCE_MS; waited += 20) await wait(20)
      if (!listening) log.warn({}, 'Redis cannot be reached; revocations are found by the sweep until it is')
    },
    async stop() {
      clearInterval(timer)
      disconnect(connections)
    },
    health: () => ({ listening, lagMs: listening ? lagMs : undefined }),
  }

  function connect() {
    const options = {
      url,
      // What cannot be said now is not worth saying later.
      disableOfflineQueue: true,
      socket: { connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: backoff },
    }
    const publisher = createClient(options)
    const subscriber = createClient(options)
    publisher.on('error', () => {}) // shows in the next test event
    publisher.on('ready', () => void test())
    subscriber.on('error', error => lose(error))
    subscriber.on('ready', () => void test())
    publisher.connect().catch(() => {})
    subscriber
      .connect()
      .then(() => subscriber.subscribe(CHANNEL, hear))
      .then(test)
      .catch(() => {})
    return { publisher, subscriber }
  }

  async function send(text: string): Promise<void> {
    await connections.publisher.publish(CHANNEL, text)
  }

  /** Sends a test event; one that was not heard before means that somebody in between takes and gives nothing. */
  async function test(): Promise<void> {
    if (expected !== null && performance.now() - sentAt >= TEST_EVERY_MS) {
      lose(new Error('a test event was not heard'))
      disconnect(connections)
      connections = connect()
      expected = null
      return
    }
    const { publisher, subscriber } = connections
    if (!publisher.isReady || !subscriber.isReady || expected !== null) return
    expected = randomUUID()
    sentAt = performance.now()
    await send(JSON.stringify({ type: 'events.test', id: expected })).catch(() => {})
  }

  function hear(text: string): void {
    const heard = JSON.parse(text) as Event | { type: 'events.test'; id: string }
    if (heard.type === 'events.test') noteTest(heard.id)
    else deliver(heard)
  }

  function noteTest(id: string): void {
    if (id !== expected) return
    expected = null
    lagMs = performance.now() - sentAt
    if (listening) return
    listening = true
    if (heardBefore) {
      log.info({}, 'events are heard again')
      deliver({ type: 'events.gap' })
    }
    heardBefore = true
  }

  function lose(cause: Error): void {
    if (listening) log.warn({ error: cause.message }, 'events are not heard; connecting anew')
    listening = false
    expected = null
  }
}

function disconnect({
  publisher,
  subscriber,
}: Record<'publisher' | 'subscriber', { destroy(): void }>): void {
  for (const client of [publisher, subscriber]) {
    try {
      client.destroy()
    } catch {
      // It was not connected.
    }
  }
}

function backoff(retries: number): number {
  return Math.min(MAX_BACKOFF_MS, 100 * 2 ** retries) * (0.5 + Math.random() / 2)
}
