import type { Instant } from '../clock.ts'
import type { Attribution } from '../endings/fact.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { User } from '../users/user.ts'
import type { Session, SessionEndCause } from './session.ts'

export interface SessionStore {
  find(id: string): Promise<Session | null>
  /** Includes ended sessions; unknown ids are absent. */
  findMany(ids: readonly string[]): Promise<Session[]>
  /** The session and its owner in one query, since every call with an access token or a page cookie reads both. */
  findWithUser(id: string): Promise<{ session: Session; user: User } | null>
  /**
   * Increments the counter if it still is `counter`, sets `lastUsedAt` to `at`, and stores `Session.retryKeys`. Null
   * for all but one of concurrent callers, and if the session has ended, reached its idle limit (`lastUsedAt` at or
   * before `idleSince`) or its absolute limit.
   */
  rotate(
    id: string,
    counter: number,
    change: { at: Instant; idleSince: Instant; retryKeys: string[] },
  ): Promise<Session | null>
  /** Assigns the sessions of apps that were granted in the page session `fromId` to the page session `toId`. */
  moveToSignIn(fromId: string, toId: string): Promise<void>
  /** Moves `lastUsedAt` of a page session forward. */
  touch(id: string, at: Instant): Promise<void>
  /** Live sessions, newest first: not ended, last used after `idleSince`, `expiresAt` later than `now`. */
  listLive(userId: string, now: Instant, idleSince: Instant, page: PageRequest): Promise<Slice<Session>>
  /** Removes at most `batch` sessions that ended or expired before `endedBefore`. Returns how many. */
  prune(endedBefore: Instant, batch: number): Promise<number>
}

/**
 * Changes of sessions. Their transaction also records an end for other nodes, the person, webhooks and the journal, and
 * a new session for webhooks (endings/facts.ts).
 */
export interface SessionChanges {
  insert(session: Session): Promise<void>
  /** Null if the session is unknown or had ended already; time and cause of the first end are kept. */
  end(id: string, cause: SessionEndCause, at: Instant, by: Attribution): Promise<Session | null>
  /** Ends all live sessions of a user except `exceptId`, or all if that is null; returns the ids. */
  endAllOf(
    userId: string,
    cause: SessionEndCause,
    exceptId: string | null,
    by: Attribution,
  ): Promise<string[]>
  /**
   * Ends a user's live sessions except the newest `maxSessions`: at most `limit`, the oldest first; returns the ids.
   * Reads a bounded part of an index, however many sessions of the user have ended, or are live.
   */
  endSurplusOf(userId: string, maxSessions: number, limit: number, by: Attribution): Promise<string[]>
  /** Ends all sessions of this user for the app (kind `app`) that have not ended; returns the ids. */
  endAllOfApp(userId: string, appId: string, by: Attribution): Promise<string[]>
  /**
   * Ends the app sessions whose grant was given in this page session (`AppGrant.signInId`), except those with offline
   * access; returns them.
   */
  endAllOfSignIn(signInId: string, by: Attribution): Promise<Pick<Session, 'id' | 'userId'>[]>
  /** Ends at most `limit` sessions of any users for the app (kind `app`) that have not ended; returns them. */
  endSomeOfApp(appId: string, limit: number, by: Attribution): Promise<Pick<Session, 'id' | 'userId'>[]>
}
