import type { Event } from '../../src/events.ts'
import type { Log } from '../../src/log.ts'
import type { Secrets } from '../../src/secrets.ts'
import { channelOf, type EventCarrier, SEALED_CHANNEL } from '../../src/storage/event-carrier.ts'
import { createEventReceiver } from '../../src/storage/event-receiver.ts'
import { createEventSeal, MAX_SEALED_BYTES } from '../../src/storage/event-seal.ts'
import { createListeners } from '../../src/storage/listeners.ts'
import type { Random } from '../support/random.ts'
import { NOTIFY } from './connection.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

const MAX_RECORDED_MESSAGES = 200

export interface SimulatedCarrierMessage {
  channel: string
  sealed: Buffer
  /** Whether the message may be lost, late or repeated without a wrong effect. */
  isHint: boolean
}

/**
 * `postgres`: events are published by the commit itself, so none is lost before it reaches the broker. `redis`: they
 * are published after the commit, so they are lost if the node crashes in between.
 */
export type CarrierKind = 'postgres' | 'redis'

/** A node's connection to the broker. */
export interface Listener {
  owner: SimulatedProcess
  channels: Set<string>
  isConnected: boolean
  at: number
  receive(sealed: Buffer): void
}

/** Carries events between nodes, to each in order; but those with `isHint` may be lost, late or duplicated. */
export class Broker {
  readonly listeners = new Set<Listener>()
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #recorded: SimulatedCarrierMessage[] = []
  /** The share of hints (`isHint`) that are lost, late or doubled. */
  hintFaults = 0
  /** The longest delivery time of a message without a fault, in milliseconds. */
  lagMs = 5

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler
    this.#random = random
  }

  publish(message: SimulatedCarrierMessage): void {
    if (this.#recorded.length < MAX_RECORDED_MESSAGES) this.#recorded.push(message)
    for (const listener of this.listeners) {
      if (!listener.channels.has(message.channel)) continue
      const hasFault = message.isHint && this.#random.next() < this.hintFaults
      const kind = hasFault ? this.#random.pick(['lost', 'late', 'doubled'] as const) : 'none'
      if (kind === 'lost') continue
      if (kind === 'late') this.#deliver(listener, message, this.#random.between(100, 50_000))
      else this.#inOrder(listener, message)
      if (kind === 'doubled') this.#deliver(listener, message, this.#random.between(0, 5000))
    }
  }

  /** Publishes what an attacker on the broker could publish: recorded messages, changed ones, and random bytes. */
  forge(): void {
    const kind = this.#random.pick(['recorded', 'changed', 'noise'] as const)
    const recorded = this.#recorded.length > 0 ? this.#random.pick(this.#recorded) : null
    const sealed = kind === 'noise' || !recorded ? this.#random.bytes(120) : Buffer.from(recorded.sealed)
    if (kind === 'changed') sealed[this.#random.between(0, sealed.length - 1)]! ^= 1
    for (const listener of this.listeners)
      this.#deliver(listener, { channel: SEALED_CHANNEL, sealed, isHint: true }, this.lagMs)
  }

  #inOrder(listener: Listener, message: SimulatedCarrierMessage): void {
    const { now } = this.#scheduler
    listener.at = Math.max(listener.at, now + 0.1 + this.#random.next() * this.lagMs)
    this.#deliver(listener, message, listener.at - now)
  }

  #deliver(listener: Listener, { sealed }: SimulatedCarrierMessage, delay: number): void {
    this.#scheduler.after(listener.owner, delay, 'event', () => {
      if (listener.isConnected && this.listeners.has(listener)) listener.receive(sealed)
    })
  }
}

export interface SimulatedCarrier extends EventCarrier {
  /** Loses the connection to the broker. */
  cutOff(): void
  /** Connects again, and reports that events may have been lost (`events.gap`). */
  heal(): void
}

/** A node's carrier: the service's own seal and receiver of events, on the simulated broker. */
export function createCarrier(deps: {
  kind: CarrierKind
  broker: Broker
  owner: SimulatedProcess
  secrets: Secrets
  log: Log
  now(): number
  execute(sql: string, parameters: readonly unknown[]): Promise<unknown>
  delay(): Promise<void>
}): SimulatedCarrier {
  const { kind, broker, owner, log } = deps
  const { subscribe, deliver } = createListeners(log)
  const seal = createEventSeal({ ...deps, channel: SEALED_CHANNEL, maxPartBytes: MAX_SEALED_BYTES })
  const receiver = createEventReceiver({ seal, log, deliver, receiveTest() {} })
  const channels = new Set([SEALED_CHANNEL])
  const listener: Listener = { owner, channels, isConnected: true, at: 0, receive: receiver.receive }

  return {
    subscribe,
    ...(kind === 'postgres' && {
      notification: (events: readonly Event[]) => ({
        sql: NOTIFY,
        parameters: events.flatMap(event => messagesOf(event)),
      }),
    }),
    async publish(event, to) {
      const messages = messagesOf(event, to)
      if (kind === 'postgres') return void (await deps.execute(NOTIFY, messages))
      await deps.delay()
      if (!listener.isConnected) throw new Error('the connection to the broker is lost')
      for (const message of messages) broker.publish(message)
    },
    async follow(nodeId) {
      channels.add(channelOf(nodeId))
    },
    async start() {
      broker.listeners.add(listener)
    },
    async stop() {
      broker.listeners.delete(listener)
      receiver.stop()
    },
    health: () => ({ listening: listener.isConnected }),
    cutOff() {
      listener.isConnected = false
    },
    heal() {
      if (listener.isConnected) return
      listener.isConnected = true
      deliver({ type: 'events.gap' })
    },
  }

  function messagesOf(event: Event, to?: readonly string[]): SimulatedCarrierMessage[] {
    const isHint = event.type !== 'hub.relay'
    const targets = to?.map(channelOf) ?? [SEALED_CHANNEL]
    return seal.seal(event).flatMap(sealed => targets.map(channel => ({ channel, sealed, isHint })))
  }
}
