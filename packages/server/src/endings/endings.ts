import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Ending } from './ending.ts'

/**
 * One ending for each subject, ready to be written in the transaction that ends them. Nothing is ever read back
 * by these ids, and an undone run leaves none behind, so they may be made inside the transaction.
 */
export function endingsOf(
  kind: Ending['kind'],
  subjectIds: readonly string[],
  userId: string,
  at: Instant,
): Ending[] {
  return subjectIds.map(subjectId => ({ id: newId(at), kind, subjectId, userId, at }))
}
