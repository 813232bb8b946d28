import type { Instant } from '../clock.ts'
import type { Attribution } from '../endings/fact.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { User } from '../users/user.ts'
import type { Session, SessionEnd } from './session.ts'

export interface SessionStore {
  find(id: string): Promise<Session | null>
  /** Includes ended sessions; unknown ids are absent. */
  findMany(ids: readonly string[]): Promise<Session[]>
  /** The session and its owner in one query; part of every authenticated call. */
  findWithUser(id: string): Promise<{ session: Session; user: User } | null>
  /**
   * Moves the counter from `counter` to the next, `lastUsedAt` to `at`, and stores the retry keys. Null for all but one
   * of any number of callers, and if the session has ended, exceeded its idle limit (`lastUsedAt` at or
   * before `idleSince`) or its absolute one.
   */
  rotate(
    id: string,
    counter: number,
    change: { at: Instant; idleSince: Instant; retryKeys: string[] },
  ): Promise<Session | null>
  /** Assigns apps' sessions that were granted in one page session to another. */
  moveToSignIn(fromId: string, toId: string): Promise<void>
  /** Moves `lastUsedAt` of a page session forward. */
  touch(id: string, at: Instant): Promise<void>
  /** Live sessions: not ended, last used after `idleSince`, `expiresAt` later than `now`. */
  listLive(userId: string, now: Instant, idleSince: Instant, page: PageRequest): Promise<Slice<Session>>
  prune(endedBefore: Instant, batch: number): Promise<number>
}

/** Changes that endings/facts.ts also records (endings, security events, journal), in the same transaction. */
export interface SessionChanges {
  insert(session: Session): Promise<void>
  /** Null if the session had ended already; the first end is kept. */
  end(id: string, cause: SessionEnd, at: Instant, by: Attribution): Promise<Session | null>
  /** Ends all of a user's live sessions but one; returns the ids. */
  endAllOf(userId: string, cause: SessionEnd, exceptId: string | null, by: Attribution): Promise<string[]>
  /**
   * Ends the oldest live sessions of a user who has more than `kept`, at most `limit` of them; returns the ids. A page
   * of an index, however many sessions of the user have ended.
   */
  endSurplusOf(userId: string, kept: number, limit: number, by: Attribution): Promise<string[]>
  /** Ends all sessions that were opened for an app by this user; returns the ids. */
  endAllOfApp(userId: string, appId: string, by: Attribution): Promise<string[]>
  /**
   * Ends the sessions of apps that were granted in this page session, except those with offline access; returns them.
   */
  endAllOfSignIn(signInId: string, by: Attribution): Promise<Pick<Session, 'id' | 'userId'>[]>
  /** Ends at most `limit` sessions that were opened for an app (kind `app`); returns them. */
  endSomeOfApp(appId: string, limit: number, by: Attribution): Promise<Pick<Session, 'id' | 'userId'>[]>
}
