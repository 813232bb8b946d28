import { type SqlBool, sql } from 'kysely'
import { toSlice } from '../paging.ts'
import type { Session } from '../sessions/session.ts'
import type { SessionChanges, SessionStore } from '../sessions/session-store.ts'
import type { LookUp } from './engine.ts'
import { newestFirst } from './paging.ts'
import type { SessionRow, UserRow } from './schema.ts'
import { countOf, type Statements, toList } from './statements.ts'
import { toUser } from './user-row.ts'

type SessionWithUserRow = SessionRow & {
  user_email: UserRow['email']
  user_name: string | null
  user_role: UserRow['role']
  user_status: UserRow['status']
  user_created_at: number
  user_deletes_at: number | null
  user_locale: string | null
}

/** A session with its user, which is read by every call that a session authenticates. */
const WITH_USER: LookUp = {
  select:
    () => `select s.id, s.user_id, s.app_id, s.kind, s.created_at, s.last_used_at, s.expires_at, s.counter, s.sealed_secret,
      s.retry_keys, s.ended_at, s.ended_by, s.network, s.client,
      s.scopes, s.audience, s.auth_time, s.sign_in_id, u.email as user_email, u.name as user_name, u.role as user_role, u.status as user_status,
      u.created_at as user_created_at, u.deletes_at as user_deletes_at, u.locale as user_locale
    from sessions s join users u on u.id = s.user_id`,
  column: 's.id',
}

export function createSessionStore({ db, lookUp }: Statements): SessionStore & SessionChanges {
  return {
    async insert(session) {
      await db.insertInto('sessions').values(toRow(session)).execute()
    },
    async find(id) {
      return toSession(await db.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst())
    },
    async findMany(ids) {
      if (ids.length === 0) return []
      const rows = await db
        .selectFrom('sessions')
        .selectAll()
        .where('id', 'in', [...ids])
        .execute()
      return rows.map(row => toSession(row)!)
    },
    async findWithUser(id) {
      const row = (await lookUp(WITH_USER, id)) as SessionWithUserRow | undefined
      if (!row) return null
      const user = toUser({
        id: row.user_id,
        email: row.user_email,
        name: row.user_name,
        role: row.user_role,
        status: row.user_status,
        created_at: row.user_created_at,
        deletes_at: row.user_deletes_at,
        locale: row.user_locale,
      })
      return { session: toSession(row)!, user: user! }
    },
    async rotate(id, counter, { at, idleSince, retryKeys }) {
      const row = await db
        .updateTable('sessions')
        .set({ counter: counter + 1, last_used_at: at, retry_keys: JSON.stringify(retryKeys) })
        .where('id', '=', id)
        .where('counter', '=', counter)
        .where('ended_at', 'is', null)
        .where('last_used_at', '>', idleSince)
        .where('expires_at', '>', at)
        .returningAll()
        .executeTakeFirst()
      return toSession(row)
    },
    async touch(id, at) {
      await db
        .updateTable('sessions')
        .set({ last_used_at: at })
        .where('id', '=', id)
        .where('last_used_at', '<', at)
        .execute()
    },
    async end(id, cause, at) {
      const row = await db
        .updateTable('sessions')
        .set({ ended_at: at, ended_by: cause })
        .where('id', '=', id)
        .where('ended_at', 'is', null)
        .returningAll()
        .executeTakeFirst()
      return toSession(row)
    },
    async endAllOf(userId, cause, exceptId, { at }) {
      const rows = await db
        .updateTable('sessions')
        .set({ ended_at: at, ended_by: cause })
        .where('user_id', '=', userId)
        .where('ended_at', 'is', null)
        .where('expires_at', '>', at)
        .$if(exceptId !== null, query => query.where('id', '<>', exceptId!))
        .returning('id')
        .execute()
      return rows.map(row => row.id)
    },
    async endSurplusOf(userId, maxSessions, limit, { at }) {
      const liveSessions = db
        .selectFrom('sessions')
        .where('user_id', '=', userId)
        .where('ended_at', 'is', null)
        .where('expires_at', '>', at)
      const newestOfSurplus = liveSessions
        .select(['created_at', 'id'])
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .offset(maxSessions)
        .limit(1)
      const surplusIds = liveSessions
        .select('id')
        .where(sql<SqlBool>`(created_at, id) <= ${newestOfSurplus}`)
        .orderBy('created_at')
        .orderBy('id')
        .limit(limit)
      const rows = await db
        .updateTable('sessions')
        .set({ ended_at: at, ended_by: 'revoked' })
        .where('id', 'in', surplusIds)
        .where('ended_at', 'is', null)
        .returning('id')
        .execute()
      return rows.map(row => row.id)
    },
    async endAllOfApp(userId, appId, { at }) {
      const rows = await db
        .updateTable('sessions')
        .set({ ended_at: at, ended_by: 'revoked' })
        .where('user_id', '=', userId)
        .where('app_id', '=', appId)
        .where('kind', '=', 'app')
        .where('ended_at', 'is', null)
        .returning('id')
        .execute()
      return rows.map(row => row.id)
    },
    async endAllOfSignIn(signInId, { at }) {
      const rows = await db
        .updateTable('sessions')
        .set({ ended_at: at, ended_by: 'logout' })
        .where('sign_in_id', '=', signInId)
        .where('ended_at', 'is', null)
        .where('scopes', 'not like', '%"offline_access"%')
        .returning(['id', 'user_id'])
        .execute()
      return rows.map(row => ({ id: row.id, userId: row.user_id }))
    },
    async moveToSignIn(fromId, toId) {
      await db.updateTable('sessions').set({ sign_in_id: toId }).where('sign_in_id', '=', fromId).execute()
    },
    async endSomeOfApp(appId, limit, { at }) {
      const sessionIds = db
        .selectFrom('sessions')
        .select('id')
        .where('app_id', '=', appId)
        .where('kind', '=', 'app')
        .where('ended_at', 'is', null)
        .orderBy('id')
        .limit(limit)
      const rows = await db
        .updateTable('sessions')
        .set({ ended_at: at, ended_by: 'revoked' })
        .where('id', 'in', sessionIds)
        .where('ended_at', 'is', null)
        .returning(['id', 'user_id'])
        .execute()
      return rows.map(row => ({ id: row.id, userId: row.user_id }))
    },
    async listLive(userId, now, idleSince, page) {
      const rows = await db
        .selectFrom('sessions')
        .selectAll()
        .where('user_id', '=', userId)
        .where('ended_at', 'is', null)
        .where('last_used_at', '>', idleSince)
        .where('expires_at', '>', now)
        .$call(newestFirst(page))
        .execute()
      return toSlice(
        rows.map(row => toSession(row)!),
        page.limit,
        session => ({ at: session.createdAt, id: session.id }),
      )
    },
    async prune(endedBefore, batch) {
      const prunableIds = db
        .selectFrom('sessions')
        .select('id')
        .where(eb => eb.or([eb('ended_at', '<', endedBefore), eb('expires_at', '<', endedBefore)]))
        .limit(batch)
      return countOf(await db.deleteFrom('sessions').where('id', 'in', prunableIds).executeTakeFirst())
    },
  }
}

function toRow(session: Session): SessionRow {
  return {
    id: session.id,
    user_id: session.userId,
    app_id: session.appId,
    kind: session.kind,
    created_at: session.createdAt,
    last_used_at: session.lastUsedAt,
    expires_at: session.expiresAt,
    counter: session.counter,
    sealed_secret: session.sealedSecret,
    retry_keys: JSON.stringify(session.retryKeys),
    ended_at: session.endedAt,
    ended_by: session.endedBy,
    network: session.network,
    client: session.client,
    scopes: session.grant && JSON.stringify(session.grant.scopes),
    audience: session.grant?.audience ?? null,
    sign_in_id: session.grant?.signInId ?? null,
    auth_time: session.authTime,
  }
}

function toSession(row: SessionRow | undefined): Session | null {
  if (!row) return null
  return {
    id: row.id,
    userId: row.user_id,
    appId: row.app_id,
    kind: row.kind,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    counter: row.counter,
    sealedSecret: row.sealed_secret,
    retryKeys: toList(row.retry_keys),
    endedAt: row.ended_at,
    endedBy: row.ended_by,
    network: row.network,
    client: row.client,
    grant:
      row.scopes === null
        ? null
        : {
            scopes: toList(row.scopes),
            audience: row.audience,
            ...(row.sign_in_id !== null && { signInId: row.sign_in_id }),
          },
    authTime: row.auth_time ?? row.created_at,
  }
}
