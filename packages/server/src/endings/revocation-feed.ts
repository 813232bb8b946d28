import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import { decodeCursor, encodeCursor, type Position } from '../paging.ts'
import type { Storage } from '../store.ts'
import type { Ending } from './ending.ts'

/** How far back the feed goes: longer than an agent token lives, so whoever reads it anew misses no live token. */
export const FEED_WINDOW = 20 * MINUTE
/** Transactions land late: what is read again each time, so that none is passed over. */
const LATE_COMMITS = 10 * SECOND

export interface FeedPage {
  endings: Ending[]
  cursor: string
  /** Whether to ask on at once, also where nothing of this page was left to tell. */
  hasMore: boolean
}

export interface Revocations {
  /**
   * What ended after `cursor` (null: in the last 20 minutes), oldest first. Entries may come twice, since
   * transactions land late; a follower keeps a set. Null: the cursor was not made here.
   */
  since(cursor: string | null, limit: number): Promise<FeedPage | null>
  /** Calls `listener` when something ended on any node. Returns the way to stop. */
  subscribe(listener: () => void): () => void
}

/** Sorts before every id: a position at the very beginning of its millisecond. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** The feed by which hubs elsewhere follow what ended here. */
export function createRevocations({ storage, clock }: { storage: Storage; clock: Clock }): Revocations {
  const { store } = storage

  return {
    async since(cursor, limit) {
      const asked = cursor === null ? null : decodeCursor(cursor)
      if (cursor !== null && !asked) return null
      const now = clock.now()
      const from = laterOf(asked, { at: now - FEED_WINDOW, id: FIRST_ID })
      // A rotated key's end is written down before it comes.
      const due = (await store.endings.since(from.at, from.id, limit)).filter(({ at }) => at <= now)
      const hasMore = due.length === limit
      // With more to come the cursor goes on from the last one. At the end it stays behind the present.
      const position = hasMore ? due.at(-1)! : caughtUp(from, now)
      return { endings: await onlyEnded(due, now), cursor: encodeCursor(position), hasMore }
    },

    subscribe(listener) {
      return storage.events.subscribe(({ type }) => {
        if (type === 'api_key.changed' || type === 'session.ended' || type === 'user.changed') listener()
      })
    },
  }

  /** A key whose conditions only became stricter has an ending as well, so that hubs ask about it; it lives on. */
  async function onlyEnded(endings: Ending[], now: Instant): Promise<Ending[]> {
    const ids = endings.filter(({ kind }) => kind === 'api_key').map(({ subjectId }) => subjectId)
    const keys = ids.length > 0 ? await store.apiKeys.findMany([...new Set(ids)]) : []
    const lives = keys.filter(
      ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt ?? now + 1) > now,
    )
    const alive = new Set(lives.map(({ id }) => id))
    return endings.filter(({ kind, subjectId }) => kind !== 'api_key' || !alive.has(subjectId))
  }
}

function caughtUp(from: Position, now: Instant): Position {
  return laterOf({ at: now - LATE_COMMITS, id: FIRST_ID }, from)
}

function laterOf(left: Position | null, right: Position): Position {
  return left && (left.at > right.at || (left.at === right.at && left.id > right.id)) ? left : right
}
