import type { App } from '../apps/app.ts'
import type { AppChanges, AppStore } from '../apps/app-store.ts'
import type { AppRow } from './schema.ts'
import type { Statements } from './statements.ts'

/** The newest secrets of an app that are valid. */
/** The newest secrets of an app that are valid. */
const KEPT_SECRETS = 2

export function createAppStore({ db, atomically }: Statements): AppStore & AppChanges {
  return {
    async find(id) {
      return toApp(await db.selectFrom('apps').selectAll().where('id', '=', id).executeTakeFirst())
    },
    async findByAudience(audience) {
      return toApp(
        await db.selectFrom('apps').selectAll().where('audience', '=', audience).executeTakeFirst(),
      )
    },
    async list() {
      const rows = await db.selectFrom('apps').selectAll().orderBy('id').execute()
      return rows.map(row => toApp(row)!)
    },
    async insert(app) {
      const inserted = await db
        .insertInto('apps')
        .values({
          id: app.id,
          name: app.name,
          first_party: app.firstParty ? 1 : 0,
          audience: app.audience,
          verify_url: app.verifyUrl,
          created_at: app.createdAt,
          covers_from: app.coversFrom,
        })
        .onConflict(conflict => conflict.column('id').doNothing())
        .returning('id')
        .executeTakeFirst()
      return inserted !== undefined
    },
    async countLive(id, now) {
      const keys = db
        .selectFrom('api_keys')
        .select(eb => eb.fn.countAll<number>().as('count'))
        .where('app_id', '=', id)
        .where('created_at', '<', now)
        .where('revoked_at', 'is', null)
        .where(eb => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
      const sessions = db
        .selectFrom('sessions')
        .select(eb => eb.fn.countAll<number>().as('count'))
        .where('app_id', '=', id)
        .where('created_at', '<', now)
        .where('ended_at', 'is', null)
        .where('expires_at', '>', now)
      return {
        keys: (await keys.executeTakeFirstOrThrow()).count,
        sessions: (await sessions.executeTakeFirstOrThrow()).count,
      }
    },
    addSecret: (appId, secretHash, at) =>
      atomically(async tx => {
        // Locks the app, so that concurrent calls see each other's secret.
        await tx
          .updateTable('apps')
          .set(eb => ({ name: eb.ref('name') }))
          .where('id', '=', appId)
          .execute()
        await tx
          .insertInto('app_secrets')
          .values({ app_id: appId, secret_hash: secretHash, created_at: at })
          .onConflict(conflict => conflict.columns(['app_id', 'secret_hash']).doNothing())
          .execute()
        const kept = tx
          .selectFrom('app_secrets')
          .select('secret_hash')
          .where('app_id', '=', appId)
          .orderBy('created_at', 'desc')
          .orderBy('secret_hash')
          .limit(KEPT_SECRETS)
        await tx
          .deleteFrom('app_secrets')
          .where('app_id', '=', appId)
          .where('secret_hash', 'not in', kept)
          .execute()
      }),
    async secrets(appId) {
      const rows = await db
        .selectFrom('app_secrets')
        .select('secret_hash')
        .where('app_id', '=', appId)
        .orderBy('created_at', 'desc')
        .orderBy('secret_hash')
        .execute()
      return rows.map(row => row.secret_hash)
    },
    async datedSecrets(appId) {
      const rows = await db
        .selectFrom('app_secrets')
        .select(['secret_hash', 'created_at'])
        .where('app_id', '=', appId)
        .orderBy('created_at', 'desc')
        .orderBy('secret_hash')
        .execute()
      return rows.map(row => ({ hash: row.secret_hash, createdAt: row.created_at }))
    },
  }
}

function toApp(row: AppRow | undefined): App | null {
  if (!row) return null
  return {
    id: row.id,
    name: row.name,
    firstParty: row.first_party === 1,
    audience: row.audience,
    verifyUrl: row.verify_url,
    createdAt: row.created_at,
    coversFrom: row.covers_from ?? row.created_at,
  }
}
