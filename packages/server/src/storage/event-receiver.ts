import { type Event, parseEvent } from '../events.ts'
import type { Log } from '../log.ts'
import type { EventSeal, Rejection } from './event-seal.ts'
import { createUnsealedHints } from './unsealed-hints.ts'

const LOG_EVERY_MS = 60_000

/** Sent by a node to itself, to find out whether its events arrive. */
export interface TestEvent {
  type: 'events.test'
  id: string
}

export interface EventReceiver {
  /** What arrived on the sealed channel. Never throws. */
  receive(sealed: Buffer): void
  /** What arrived on the channel of the previous minor version, which is read while one is listed. Never throws. */
  receiveUnsealed(text: string): void
  /** How many were not accepted since the start, by reason. */
  readonly rejected: ReadonlyMap<Rejection, number>
  stop(): void
}

/**
 * The one way by which events enter this process. Whatever is not sealed by a process with a listed secret, or
 * not for the first time, is counted, logged at most once a minute, and ignored.
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
  let unlogged = 0
  let loggedAt = Number.NEGATIVE_INFINITY

  return {
    rejected,
    receive(sealed) {
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
      const taken = hints.receive(text)
      // A genuine node of that version sends itself test events and relays messages: no reason to warn.
      if (taken === null) count('unsealed')
      if (taken === false) reject('too_many')
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
      'events that no node with a listed secret sealed just now were ignored',
    )
    loggedAt = performance.now()
    unlogged = 0
  }
}
