import type { Instant } from '../clock.ts'
import { endingsOf } from '../endings/endings.ts'
import type { Caller } from '../network.ts'
import { securityEvent } from '../security-events/security-events.ts'
import type { Transaction } from '../store.ts'
import type { Session } from './session.ts'

/** What belongs to every end of a session, in the transaction that ended it: its records, and word to all nodes. */
export async function recordEnd(
  tx: Transaction,
  type: 'session_ended' | 'refresh_token_reused',
  { id, userId }: Pick<Session, 'id' | 'userId'>,
  caller: Caller | null,
  now: Instant,
): Promise<void> {
  await tx.endings.insert(endingsOf('session', [id], userId, now))
  await tx.securityEvents.insert(securityEvent(type, userId, now, caller, { sessionId: id }))
  tx.publish({ type: 'session.ended', sessionId: id, userId })
}
