import type { Events, RelayEvent } from '../events.ts'
import type { Log } from '../log.ts'

const MIB = 1024 * 1024
/** Of everything that waits to be published, however long the database or Redis takes. */
const MAX_QUEUED_BYTES = 96 * MIB
/** Answers and orders without a frame are still accepted when messages have filled the queue. */
const RESERVED_BYTES = 16 * MIB
/** A queued event without its frame: its objects, ids and promises. */
const EVENT_BYTES = 1024
const BYTES_PER_CHARACTER = 2
/** Publications that fail come in numbers: one line for all of so long. */
const WARN_EVERY_MS = 60_000

export interface RelayQueue {
  /**
   * Publishes the event after those that were added before, unless it is not wanted any more by then. False when
   * there is no room for it.
   */
  add(event: RelayEvent, isWanted?: () => boolean): boolean
}

/**
 * Publishes one event after the other: a carrier with several connections would reorder them. An owner may take
 * half of the bytes that are free: one, however much it sends, leaves two thirds of them, and ten leave room for more.
 */
export function createRelayQueue({ events, log }: { events: Pick<Events, 'publish'>; log: Log }): RelayQueue {
  const queuedOf = new Map<string, number>()
  let queued = 0
  let publishing = Promise.resolve()
  let warnedAt = Number.NEGATIVE_INFINITY

  return {
    add(event, isWanted = () => true) {
      const { owner, bytes } = sizeOf(event)
      if (!hasRoom(owner, bytes)) return false
      take(owner, bytes)
      publishing = publishing
        .then(() => (isWanted() ? events.publish(event) : undefined))
        .catch(warn)
        .finally(() => take(owner, -bytes))
      return true
    },
  }

  function hasRoom(owner: string | null, bytes: number): boolean {
    if (!owner) return queued + bytes <= MAX_QUEUED_BYTES + RESERVED_BYTES
    return (queuedOf.get(owner) ?? 0) + bytes <= (MAX_QUEUED_BYTES - queued) / 2
  }

  function take(owner: string | null, bytes: number): void {
    queued += bytes
    if (!owner) return
    const left = (queuedOf.get(owner) ?? 0) + bytes
    if (left === 0) queuedOf.delete(owner)
    else queuedOf.set(owner, left)
  }

  function warn(error: unknown): void {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return
    warnedAt = performance.now()
    log.warn({ err: error }, 'messages to other nodes could not be published')
  }
}

/** What it takes in memory at most, and the owner of a message. */
function sizeOf({ message }: RelayEvent): { owner: string | null; bytes: number } {
  if (message.kind === 'answer' || message.order.op !== 'deliver') return { owner: null, bytes: EVENT_BYTES }
  const { userId, frame } = message.order
  return { owner: userId, bytes: EVENT_BYTES + BYTES_PER_CHARACTER * frame.length }
}
