import type { AuthorizationCode } from '../authorizations/authorization-code.ts'
import type { AuthorizationCodeStore } from '../authorizations/authorization-code-store.ts'
import type { AuthorizationCodeRow } from './schema.ts'
import { countOf, type Statements, toList } from './statements.ts'

export function createAuthorizationCodeStore({ db }: Statements): AuthorizationCodeStore {
  return {
    async insert(code) {
      const insertedRow = await db
        .insertInto('authorization_codes')
        .values(toRow(code))
        .onConflict(conflict => conflict.column('pushed_id').doNothing())
        .returning('code_hash')
        .executeTakeFirst()
      return insertedRow !== undefined
    },
    async find(codeHash) {
      return toCode(
        await db
          .selectFrom('authorization_codes')
          .selectAll()
          .where('code_hash', '=', codeHash)
          .executeTakeFirst(),
      )
    },
    async consume(codeHash, sessionId, at) {
      return toCode(
        await db
          .updateTable('authorization_codes')
          .set({ used_at: at, session_id: sessionId })
          .where('code_hash', '=', codeHash)
          .where('used_at', 'is', null)
          .where('expires_at', '>', at)
          .returningAll()
          .executeTakeFirst(),
      )
    },
    async prune(createdBefore, batch) {
      const prunableHashes = db
        .selectFrom('authorization_codes')
        .select('code_hash')
        .where('created_at', '<', createdBefore)
        .limit(batch)
      return countOf(
        await db
          .deleteFrom('authorization_codes')
          .where('code_hash', 'in', prunableHashes)
          .executeTakeFirst(),
      )
    },
  }
}

function toRow(code: AuthorizationCode): AuthorizationCodeRow {
  return {
    code_hash: code.codeHash,
    app_id: code.appId,
    user_id: code.userId,
    sign_in_id: code.signInId,
    redirect_uri: code.redirectUri,
    scopes: JSON.stringify(code.scopes),
    audience: code.audience,
    nonce: code.nonce,
    code_challenge: code.codeChallenge,
    auth_time: code.authTime,
    network: code.network,
    client: code.client,
    pushed_id: code.pushedId,
    created_at: code.createdAt,
    expires_at: code.expiresAt,
    used_at: code.usedAt,
    session_id: code.sessionId,
  }
}

function toCode(row: AuthorizationCodeRow | undefined): AuthorizationCode | null {
  if (!row) return null
  return {
    codeHash: row.code_hash,
    appId: row.app_id,
    userId: row.user_id,
    signInId: row.sign_in_id,
    redirectUri: row.redirect_uri,
    scopes: toList(row.scopes),
    audience: row.audience,
    nonce: row.nonce,
    codeChallenge: row.code_challenge,
    authTime: row.auth_time,
    network: row.network,
    client: row.client,
    pushedId: row.pushed_id,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    usedAt: row.used_at,
    sessionId: row.session_id,
  }
}
