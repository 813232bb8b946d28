import type { Consent } from '../consents/consent.ts'
import type { ConsentChanges, ConsentStore } from '../consents/consent-store.ts'
import { toSlice } from '../paging.ts'
import type { Db } from './engine.ts'
import { isOlderThan } from './paging.ts'
import type { ConsentRow } from './schema.ts'
import { type Statements, toList } from './statements.ts'

export function createConsentStore({ db, atomically }: Statements): ConsentStore & ConsentChanges {
  return {
    async find(userId, appId) {
      const row = await consentsOf(db, userId)
        .selectAll('consents')
        .where('app_id', '=', appId)
        .executeTakeFirst()
      return row ? toConsent(row) : null
    },
    async list(userId, page) {
      const rows = await consentsOf(db, userId)
        .innerJoin('apps', 'apps.id', 'consents.app_id')
        .selectAll('consents')
        .select('apps.name')
        .where('revoked_at', 'is', null)
        .$if(page.after !== null, query =>
          query.where(isOlderThan('consents.granted_at', page.after!, 'consents.id')),
        )
        .orderBy('consents.granted_at', 'desc')
        .orderBy('consents.id', 'desc')
        .limit(page.limit + 1)
        .execute()
      const consents = rows.map(row => ({ ...toConsent(row), name: row.name }))
      return toSlice(consents, page.limit, consent => ({ at: consent.grantedAt, id: consent.id }))
    },
    grant: ({ id, userId, appId, scopes, grantedAt }, since) =>
      atomically(async tx => {
        // Inserts a consent without scopes, or locks the existing one, so that concurrent grants add up.
        const row = await tx
          .insertInto('consents')
          .values({
            id,
            user_id: userId,
            app_id: appId,
            scopes: '[]',
            granted_at: grantedAt,
            revoked_at: null,
          })
          .onConflict(conflict =>
            conflict
              .columns(['user_id', 'app_id'])
              .doUpdateSet(eb => ({ user_id: eb.ref('consents.user_id') })),
          )
          .returningAll()
          .executeTakeFirstOrThrow()
        const activeConsent = row.revoked_at === null && row.granted_at >= since ? toConsent(row) : null
        const newConsent: Consent = {
          id: activeConsent?.id ?? id,
          userId,
          appId,
          scopes: [...new Set([...(activeConsent?.scopes ?? []), ...scopes])].sort(),
          grantedAt: activeConsent?.grantedAt ?? grantedAt,
          revokedAt: null,
        }
        await consentUpdate(tx, userId, appId)
          .set({
            id: newConsent.id,
            scopes: JSON.stringify(newConsent.scopes),
            granted_at: newConsent.grantedAt,
            revoked_at: null,
          })
          .execute()
        return newConsent
      }),
    async withdraw(userId, appId, at) {
      const row = await consentUpdate(db, userId, appId)
        .set({ revoked_at: at })
        .where('revoked_at', 'is', null)
        .returningAll()
        .executeTakeFirst()
      return row ? toConsent(row) : null
    },
    async withdrawSomeOfApp(appId, limit, at) {
      const consentIds = db
        .selectFrom('consents')
        .select('id')
        .where('app_id', '=', appId)
        .where('revoked_at', 'is', null)
        .limit(limit)
      const rows = await db
        .updateTable('consents')
        .set({ revoked_at: at })
        .where('app_id', '=', appId)
        .where('id', 'in', consentIds)
        .where('revoked_at', 'is', null)
        .returningAll()
        .execute()
      return rows.map(toConsent)
    },
  }
}

function consentsOf(db: Db, userId: string) {
  return db.selectFrom('consents').where('user_id', '=', userId)
}

export function consentUpdate(db: Db, userId: string, appId: string) {
  return db.updateTable('consents').where('user_id', '=', userId).where('app_id', '=', appId)
}

export function toConsent(row: ConsentRow): Consent {
  return {
    id: row.id,
    userId: row.user_id,
    appId: row.app_id,
    scopes: toList(row.scopes),
    grantedAt: row.granted_at,
    revokedAt: row.revoked_at,
  }
}
