import type { Events, RelayEvent, RelayNotice } from '../events.ts'
import type { Log } from '../log.ts'

const MIB = 1024 * 1024
/** Maximum size of the queue, which grows while the database or Redis is slow. */
const MAX_QUEUED_BYTES = 96 * MIB
/** Bytes reserved for events that count for no owner, such as responses, when messages have filled the queue. */
const RESERVED_BYTES = 16 * MIB
/** Estimated size of a queued event without the frame, changes or state of a connection that it carries. */
const EVENT_BYTES = 1024
/** Estimated size of one change in a `presence` notice (`RelayNotice`). */
const CHANGE_BYTES = 1024
const BYTES_PER_CHARACTER = 2
/** Failures to publish are logged at most once in this time. */
const WARN_EVERY_MS = 60_000

export interface QueueOptions {
  isCurrent?: (() => boolean) | undefined
  owner?: string | null
}

export interface RelayQueue {
  /**
   * Publishes the event after all earlier ones, unless `isCurrent` returns false when its turn comes. False if the
   * queue, or the owner's share of it, is full. With `onOwnChannels` the event is published on the channels of its
   * target nodes instead of the channel of all nodes.
   * `owner` is the user whose share of the queue the event uses, if the event itself does not name one.
   */
  add(event: RelayEvent, options?: QueueOptions & { onOwnChannels?: boolean }): boolean
  /** Resolves once everything that was added before is published, or has failed to be. */
  flush(): Promise<void>
}

/**
 * Publishes events one at a time, since the database or Redis could reorder those that reach it over several
 * connections. With a new event, its owner (a user) may have at most half as many bytes in the queue as were free
 * before it: so one owner leaves two thirds of the queue to others, and even ten owners do not fill it.
 */
export function createRelayQueue({ events, log }: { events: Pick<Events, 'publish'>; log: Log }): RelayQueue {
  /** By user id. */
  const queuedBytesByOwner = new Map<string, number>()
  let queuedBytes = 0
  let lastPublication = Promise.resolve()
  let warnedAt = Number.NEGATIVE_INFINITY

  return {
    add(event, { isCurrent = () => true, onOwnChannels = false, owner: givenOwner = null } = {}) {
      const { owner, bytes } = sizeOf(event, givenOwner)
      if (!hasRoom(owner, bytes)) return false
      addBytes(owner, bytes)
      lastPublication = lastPublication
        .then(() => (isCurrent() ? events.publish(event, onOwnChannels ? event.to : undefined) : undefined))
        .catch(warn)
        .finally(() => addBytes(owner, -bytes))
      return true
    },
    flush: () => lastPublication,
  }

  function hasRoom(owner: string | null, bytes: number): boolean {
    if (!owner) return queuedBytes + bytes <= MAX_QUEUED_BYTES + RESERVED_BYTES
    return (queuedBytesByOwner.get(owner) ?? 0) + bytes <= (MAX_QUEUED_BYTES - queuedBytes) / 2
  }

  function addBytes(owner: string | null, bytes: number): void {
    queuedBytes += bytes
    if (!owner) return
    const total = (queuedBytesByOwner.get(owner) ?? 0) + bytes
    if (total === 0) queuedBytesByOwner.delete(owner)
    else queuedBytesByOwner.set(owner, total)
  }

  function warn(error: unknown): void {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return
    warnedAt = performance.now()
    log.warn({ err: error }, 'messages to other nodes could not be published')
  }
}

/** The estimated memory of an event, and the owner whose share of the queue it uses; null if it uses no one's. */
function sizeOf({ message }: RelayEvent, givenOwner: string | null): { owner: string | null; bytes: number } {
  if (message.kind === 'notice')
    return { owner: message.notice.userId, bytes: EVENT_BYTES + sizeOfNotice(message.notice) }
  if (message.kind === 'released')
    return { owner: givenOwner, bytes: EVENT_BYTES + BYTES_PER_CHARACTER * message.text.length }
  if (message.kind !== 'order' || message.order.op !== 'deliver') return { owner: null, bytes: EVENT_BYTES }
  const { userId, frame } = message.order
  return { owner: userId, bytes: EVENT_BYTES + BYTES_PER_CHARACTER * frame.length }
}

function sizeOfNotice(notice: RelayNotice): number {
  return notice.op === 'presence' ? CHANGE_BYTES * notice.changes.length : 0
}
