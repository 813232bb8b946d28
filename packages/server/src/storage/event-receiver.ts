import { type Event, parseEvent } from '../events.ts'
import type { Log } from '../log.ts'
import type { EventSeal, Rejection } from './event-seal.ts'
import { createUnsealedHints } from './unsealed-hints.ts'

const LOG_INTERVAL_MS = 60_000

/** An event that a node sends to itself, to check that events arrive. */
export interface TestEvent {
  type: 'events.test'
  id: string
}

export interface EventReceiver {
  /** Handles a payload of a channel of sealed events. Never throws. */
  receive(sealed: Buffer): void
  /** Handles a payload of the previous minor version's channel. Never throws. */
  receiveUnsealed(text: string): void
  /** Number of payloads of the sealed channels since the start, whether or not they are meant for this node. */
  readonly received: number
  /** Number of rejected events since the start, by reason. */
  readonly rejected: ReadonlyMap<Rejection, number>
  stop(): void
}

/**
 * Receives the events of all nodes for this process. Rejected events are counted by reason and ignored. A line on them,
 * except for `unsealed` ones, is logged at most once a minute.
 */
export function createEventReceiver(deps: {
  seal: Pick<EventSeal, 'open'>
  log: Log
  deliver(event: Event): void
  receiveTest(id: string): void
}): EventReceiver {
  const { seal, log, deliver } = deps
  const rejected = new Map<Rejection, number>()
  const hints = createUnsealedHints(deliver)
  let received = 0
  let unloggedCount = 0
  let loggedAt = Number.NEGATIVE_INFINITY

  return {
    get received() {
      return received
    },
    rejected,
    receive(sealed) {
      received++
      const result = seal.open(sealed)
      if (result === 'part') return
      if ('rejected' in result) return reject(result.rejected)
      const testEvent = result.value as TestEvent | null
      if (testEvent?.type === 'events.test') return deps.receiveTest(testEvent.id)
      const event = parseEvent(result.value)
      if (event) deliver(event)
      else reject('invalid')
    },
    receiveUnsealed(text) {
      const isAccepted = hints.receive(text)
      // Not logged: nodes of the previous minor version also publish test events and relay messages on this channel.
      if (isAccepted === null) count('unsealed')
      if (isAccepted === false) reject('too_many')
    },
    stop: hints.stop,
  }

  function count(reason: Rejection): void {
    rejected.set(reason, (rejected.get(reason) ?? 0) + 1)
  }

  function reject(reason: Rejection): void {
    count(reason)
    unloggedCount++
    if (performance.now() - loggedAt < LOG_INTERVAL_MS) return
    log.warn(
      { reason, events: unloggedCount },
      'ignored events that were replayed, stale, or not sealed under a listed secret',
    )
    loggedAt = performance.now()
    unloggedCount = 0
  }
}
