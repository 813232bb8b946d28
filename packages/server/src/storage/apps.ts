import { sql } from 'kysely'
import { type App, type AppSettings, REGISTERED_PREFIX } from '../apps/app.ts'
import { MAX_APP_SECRETS } from '../apps/app-secret.ts'
import type { AppChanges, AppStore } from '../apps/app-store.ts'
import type { Db } from './engine.ts'
import type { AppRow, Flag } from './schema.ts'
import { countOf, type Statements, toList } from './statements.ts'

export function createAppStore({ db, atomically }: Statements): AppStore & AppChanges {
  return {
    async find(id) {
      return toApp(await selectApps(db).where('id', '=', id).executeTakeFirst())
    },
    async findByAudience(audience) {
      return toApp(await selectApps(db).where('audience', '=', audience).executeTakeFirst())
    },
    async list() {
      const rows = await selectApps(db).orderBy('id').execute()
      return rows.map(row => toApp(row)!)
    },
    async page({ limit, after, selfRegistered }) {
      const { rows } = await sql<AppRow>`select * from apps where removed_at is null
        ${after === null ? sql`` : sql`and id > ${after}`}
        ${selfRegistered === undefined ? sql`` : sql`and ${sql.raw(selfRegistered ? '' : 'not')} (id like ${`${REGISTERED_PREFIX}%`} or id like 'http%:%')`}
        order by id limit ${limit + 1}`.execute(db)
      return rows.map(row => toApp(row)!)
    },
    async publicRedirectUris() {
      const rows = await db
        .selectFrom('apps')
        .select('redirect_uris')
        .where('is_public', '=', 1)
        .where('removed_at', 'is', null)
        .execute()
      return rows.flatMap(row => toList(row.redirect_uris ?? '[]'))
    },
    async insert(app) {
      const row = {
        ...toSettingColumns(app),
        created_at: app.createdAt,
        covers_from: app.coversFrom,
        removed_at: null,
      }
      const insertedRow = await db
        .insertInto('apps')
        .values({ ...row, id: app.id, first_party: app.firstParty ? 1 : 0 })
        .onConflict(conflict =>
          conflict.column('id').doUpdateSet(row).where('apps.removed_at', 'is not', null),
        )
        .returning('id')
        .executeTakeFirst()
      return insertedRow !== undefined
    },
    async lock(id) {
      return toApp(
        await db
          .updateTable('apps')
          .set(eb => ({ name: eb.ref('name') }))
          .where('id', '=', id)
          .where('removed_at', 'is', null)
          .returningAll()
          .executeTakeFirst(),
      )
    },
    async update(app) {
      await db.updateTable('apps').set(toSettingColumns(app)).where('id', '=', app.id).execute()
    },
    async remove(id, at) {
      const removedRow = await db
        .updateTable('apps')
        .set({ audience: null, removed_at: at })
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .returning('id')
        .executeTakeFirst()
      if (removedRow) await db.deleteFrom('app_secrets').where('app_id', '=', id).execute()
      return removedRow !== undefined
    },
    async removedAt(id) {
      const row = await db.selectFrom('apps').select('removed_at').where('id', '=', id).executeTakeFirst()
      return row?.removed_at ?? null
    },
    async removeSecret(appId, secretHash) {
      const deletion = db
        .deleteFrom('app_secrets')
        .where('app_id', '=', appId)
        .where('secret_hash', '=', secretHash)
      return countOf(await deletion.executeTakeFirst()) > 0
    },
    async dropSecrets(appId) {
      return countOf(await db.deleteFrom('app_secrets').where('app_id', '=', appId).executeTakeFirst()) > 0
    },
    async countLive(id, now) {
      const keyQuery = db
        .selectFrom('api_keys')
        .select(eb => eb.fn.countAll<number>().as('count'))
        .where('app_id', '=', id)
        .where('created_at', '<', now)
        .where('revoked_at', 'is', null)
        .where(eb => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
      const sessionQuery = db
        .selectFrom('sessions')
        .select(eb => eb.fn.countAll<number>().as('count'))
        .where('app_id', '=', id)
        .where('created_at', '<', now)
        .where('ended_at', 'is', null)
        .where('expires_at', '>', now)
      return {
        keys: (await keyQuery.executeTakeFirstOrThrow()).count,
        sessions: (await sessionQuery.executeTakeFirstOrThrow()).count,
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
        const newestHashes = tx
          .selectFrom('app_secrets')
          .select('secret_hash')
          .where('app_id', '=', appId)
          .orderBy('created_at', 'desc')
          .orderBy('secret_hash')
          .limit(MAX_APP_SECRETS)
        await tx
          .deleteFrom('app_secrets')
          .where('app_id', '=', appId)
          .where('secret_hash', 'not in', newestHashes)
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

/** Selects the apps that are not removed. */
function selectApps(db: Db) {
  return db.selectFrom('apps').selectAll().where('removed_at', 'is', null)
}

function toSettingColumns(app: AppSettings) {
  return {
    name: app.name,
    audience: app.audience,
    verify_url: app.verifyUrl,
    redirect_uris: JSON.stringify(app.redirectUris),
    logout_uris: JSON.stringify(app.logoutUris),
    backchannel_logout_uri: app.backchannelLogoutUri,
    token_alg: app.tokenAlg,
    id_token_alg: app.idTokenAlg,
    scopes: JSON.stringify(app.scopes),
    trusted: toFlag(app.trusted),
    is_public: toFlag(app.isPublic),
    jwks_uri: app.jwksUri,
    require_pkce: toFlag(app.requirePkce),
  }
}

function toFlag(value: boolean): Flag {
  return value ? 1 : 0
}

function toApp(row: AppRow | undefined): App | null {
  if (!row) return null
  return {
    id: row.id,
    name: row.name,
    firstParty: row.first_party === 1,
    audience: row.audience,
    verifyUrl: row.verify_url,
    redirectUris: toList(row.redirect_uris ?? '[]'),
    logoutUris: toList(row.logout_uris ?? '[]'),
    backchannelLogoutUri: row.backchannel_logout_uri,
    tokenAlg: row.token_alg ?? 'EdDSA',
    idTokenAlg: row.id_token_alg ?? 'RS256',
    scopes: toList(row.scopes ?? '[]'),
    trusted: row.trusted === 1,
    isPublic: row.is_public === 1,
    jwksUri: row.jwks_uri,
    requirePkce: row.require_pkce === 1,
    createdAt: row.created_at,
    coversFrom: row.covers_from ?? row.created_at,
  }
}
