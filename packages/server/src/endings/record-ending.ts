import type { Instant } from '../clock.ts'
import type { Event } from '../events.ts'
import type { Caller } from '../network.ts'
import { type SecurityEventType, securityEvent } from '../security-events/security-event.ts'
import type { Transaction } from '../store.ts'
import { type Ending, endingsOf } from './ending.ts'

export interface Ended {
  kind: Ending['kind']
  /** What the store's verb says that it ended; none is nothing to record. */
  ids: readonly string[]
  userId: string
  at: Instant
  /** What the owner reads in the list of security events; null where another event of this transaction covers it. */
  because: SecurityEventType | null
  /** Null when the operator or the service itself did it. */
  caller: Caller | null
}

/**
 * Records that something ended, in the transaction that ended its rows: the ending, which hubs, feed and journal
 * read, the owner's security event, and the event for the other nodes. Nothing else writes endings, so none of these
 * can be forgotten for one of the others.
 */
export async function recordEnding(tx: Transaction, ended: Ended): Promise<void> {
  const { kind, ids, userId, at, because, caller } = ended
  await tx.endings.insert(endingsOf(kind, ids, userId, at))
  for (const id of ids) {
    const { about, event } = KINDS[kind](id, userId)
    if (because) await tx.securityEvents.insert(securityEvent(because, userId, at, caller, about))
    tx.publish(event)
  }
}

/** Records an ending that is known ahead: the end of a key that was rotated. Its rows say so themselves. */
export async function recordLaterEnding(
  tx: Transaction,
  { kind, id, userId, at }: { kind: Ending['kind']; id: string; userId: string; at: Instant },
): Promise<void> {
  await tx.endings.insert(endingsOf(kind, [id], userId, at))
}

/** How each kind is told. */
const KINDS: Record<
  Ending['kind'],
  (id: string, userId: string) => { about: { keyId?: string; sessionId?: string }; event: Event }
> = {
  api_key: (keyId, userId) => ({ about: { keyId }, event: { type: 'api_key.changed', keyId, userId } }),
  session: (sessionId, userId) => ({
    about: { sessionId },
    event: { type: 'session.ended', sessionId, userId },
  }),
  user: (_, userId) => ({ about: {}, event: { type: 'user.changed', userId } }),
}
