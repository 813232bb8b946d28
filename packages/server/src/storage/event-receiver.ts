import { type Event, parseEvent } from '../events.ts'
import type { Log } from '../log.ts'
import type { EventSeal, Rejection } from './event-seal.ts'
import { createUnsealedHints } from './unsealed-hints.ts'

const LOG_EVERY_MS = 60_000

/** Sent by a node to itself, to check that events arrive. */
export interface TestEvent {
  type: 'events.test'
  id: string
}

export interface EventReceiver {
  /** Handles a payload of the sealed channel. Never throws. */
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
 * Receives all events of this process. An event that was not sealed under a configured secret, or that is replayed, is
 * counted, logged at most once a minute, and ignored.
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
  let unlogged = 0
  let loggedAt = Number.NEGATIVE_INFINITY

  return {
    get received() {
      return received
    },
    rejected,
    receive(sealed) {
      received++
      const opened = seal.open(sealed)
      if (opened === 'part') return
      if ('rejected' in opened) return reject(opened.rejected)
      const test = opened.value as TestEvent | null
      if (test?.type === 'events.test') return deps.receiveTest(test.id)
      const event = parseEvent(opened.value)
      if (event) deliver(event)
      else reject('invalid')
    },
    receiveUnsealed(text) {
      const isAccepted = hints.receive(text)
      // Not logged, since genuine nodes of that version also publish test events and relay messages.
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
    unlogged++
    if (performance.now() - loggedAt < LOG_EVERY_MS) return
    log.warn(
      { reason, events: unlogged },
      'ignored events that were not sealed under a listed secret, replayed or stale',
    )
    loggedAt = performance.now()
    unlogged = 0
  }
}
