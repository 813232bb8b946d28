import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import { decodeCursor, encodeCursor, type Position } from '../paging.ts'
import type { Storage } from '../store.ts'
import type { Ending } from './ending.ts'

/**
 * How far back the feed goes: longer than the lifetime of an agent token, so that a new consumer learns of every ended
 * key whose tokens are still valid.
 */
export const FEED_WINDOW = 20 * MINUTE
/**
 * At the end of the feed the cursor stays this long in the past, since a transaction may commit this long after the
 * time that its endings record.
 */
const LATE_COMMIT_MARGIN = 10 * SECOND

export interface FeedPage {
  endings: Ending[]
  /** The cursor of the next page. */
  cursor: string
  /** The cursor of a page with the entries after this one, for a consumer that stops within the page. */
  cursorAfter(ending: Ending): string
  /** Whether there are more entries now, even if this page is empty after filtering. */
  hasMore: boolean
}

export interface Revocations {
  /**
   * Endings after `cursor`, oldest first; those of the last 20 minutes if `cursor` is null or older than that. A later
   * page may repeat entries, since transactions may commit late; consumers must deduplicate. Null for an invalid cursor.
   */
  since(cursor: string | null, limit: number): Promise<FeedPage | null>
  /**
   * Calls `listener` when a key, session or account ended or changed on any node, which may have added an entry.
   * Returns a function to unsubscribe.
   */
  subscribe(listener: () => void): () => void
}

/** Sorts before all other ids. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** The feed of endings, by which apps learn whose tokens to refuse. */
export function createRevocations({ storage, clock }: { storage: Storage; clock: Clock }): Revocations {
  const { store } = storage

  return {
    async since(cursor, limit) {
      const requestedPosition = cursor === null ? null : decodeCursor(cursor)
      if (cursor !== null && !requestedPosition) return null
      const now = clock.now()
      const from = laterOf(requestedPosition, { at: now - FEED_WINDOW, id: FIRST_ID })
      // Skips future endings: those of rotated keys are recorded in advance.
      const dueEndings = (await store.endings.since(from.at, from.id, limit)).filter(({ at }) => at <= now)
      const hasMore = dueEndings.length === limit
      const position = hasMore ? dueEndings.at(-1)! : endPosition(from, now)
      return {
        endings: await withoutActiveKeys(dueEndings, now),
        cursor: encodeCursor(position),
        cursorAfter: ending => encodeCursor(isLater(ending, position) ? position : ending),
        hasMore,
      }
    },

    subscribe(listener) {
      return storage.events.subscribe(({ type }) => {
        if (type === 'api_key.changed' || type === 'session.ended' || type === 'user.changed') listener()
      })
    },
  }

  /**
   * Removes endings of keys that are still active. Such a key was only restricted, which is recorded as an ending so
   * that hubs reload its status.
   */
  async function withoutActiveKeys(endings: Ending[], now: Instant): Promise<Ending[]> {
    const ids = endings.filter(({ kind }) => kind === 'api_key').map(({ subjectId }) => subjectId)
    const keys = ids.length > 0 ? await store.apiKeys.findMany([...new Set(ids)]) : []
    const activeKeys = keys.filter(
      ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt ?? now + 1) > now,
    )
    const activeIds = new Set(activeKeys.map(({ id }) => id))
    return endings.filter(({ kind, subjectId }) => kind !== 'api_key' || !activeIds.has(subjectId))
  }
}

function endPosition(from: Position, now: Instant): Position {
  return laterOf({ at: now - LATE_COMMIT_MARGIN, id: FIRST_ID }, from)
}

function laterOf(left: Position | null, right: Position): Position {
  return left && isLater(left, right) ? left : right
}

function isLater(left: Position, right: Position): boolean {
  return left.at > right.at || (left.at === right.at && left.id > right.id)
}
