import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import { decodeCursor, encodeCursor, type Position } from '../paging.ts'
import type { Storage } from '../store.ts'
import type { Ending } from './ending.ts'

/** How far back the feed goes: longer than the lifetime of an agent token, so a new consumer misses no live token. */
export const FEED_WINDOW = 20 * MINUTE
/** Transactions may commit late, so each read of the end of the feed repeats this much of it. */
const LATE_COMMITS = 10 * SECOND

export interface FeedPage {
  endings: Ending[]
  cursor: string
  /** Whether there are more entries now, even if this page is empty after filtering. */
  hasMore: boolean
}

export interface Revocations {
  /**
   * Endings after `cursor` (null: of the last 20 minutes), oldest first. Entries may be repeated, since transactions
   * may commit late; consumers must deduplicate. Null for an invalid cursor.
   */
  since(cursor: string | null, limit: number): Promise<FeedPage | null>
  /** Calls `listener` when something ended on any node. Returns a function to unsubscribe. */
  subscribe(listener: () => void): () => void
}

/** Sorts before all other ids. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** The feed of endings for external consumers, such as other hubs. */
export function createRevocations({ storage, clock }: { storage: Storage; clock: Clock }): Revocations {
  const { store } = storage

  return {
    async since(cursor, limit) {
      const requested = cursor === null ? null : decodeCursor(cursor)
      if (cursor !== null && !requested) return null
      const now = clock.now()
      const from = laterOf(requested, { at: now - FEED_WINDOW, id: FIRST_ID })
      // Endings of rotated keys are recorded in advance.
      const dueEndings = (await store.endings.since(from.at, from.id, limit)).filter(({ at }) => at <= now)
      const hasMore = dueEndings.length === limit
      // If there are more pages, the cursor continues after the last entry; at the end of the feed it stays
      // LATE_COMMITS in the past.
      const position = hasMore ? dueEndings.at(-1)! : endPosition(from, now)
      return { endings: await onlyEnded(dueEndings, now), cursor: encodeCursor(position), hasMore }
    },

    subscribe(listener) {
      return storage.events.subscribe(({ type }) => {
        if (type === 'api_key.changed' || type === 'session.ended' || type === 'user.changed') listener()
      })
    },
  }

  /**
   * Removes endings of keys that are still active: they were only restricted, which is recorded so that hubs reload
   * their status.
   */
  async function onlyEnded(endings: Ending[], now: Instant): Promise<Ending[]> {
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
  return laterOf({ at: now - LATE_COMMITS, id: FIRST_ID }, from)
}

function laterOf(left: Position | null, right: Position): Position {
  return left && (left.at > right.at || (left.at === right.at && left.id > right.id)) ? left : right
}
