import type { MagicLink } from '../magic-links/magic-link.ts'
import type { MagicLinkChanges, MagicLinkStore } from '../magic-links/magic-link-store.ts'
import { bucketNamesOf, ownBucketNamesOf } from '../magic-links/send-limits.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { LookUp } from './engine.ts'
import type { MagicLinkRow } from './schema.ts'
import {
  clampFutureSends,
  clearSends,
  forgetSends,
  lockSendBuckets,
  pruneSends,
  recordSend,
  sendHistories,
  sendHistory,
  sendTimesOf,
} from './send-limits.ts'
import { countOf, type Statements } from './statements.ts'

const COLUMNS =
  'id, token_hash, code_hash, email, app_id, created_at, expires_at, used_at, code_tries, locale'
const BY_ID: LookUp = {
  select: () => `select ${COLUMNS} from magic_links`,
  column: 'id',
}
const BY_TOKEN_HASH: LookUp = {
  select: () => `select ${COLUMNS} from magic_links`,
  column: 'token_hash',
}

export function createMagicLinkStore({
  db,
  atomically,
  lookUp,
}: Statements): MagicLinkStore & MagicLinkChanges {
  return {
    async insert(link) {
      await db.insertInto('magic_links').values(toRow(link)).execute()
    },
    async find(id) {
      return toLink((await lookUp(BY_ID, id)) as MagicLinkRow | undefined)
    },
    async findByTokenHash(tokenHash) {
      return toLink((await lookUp(BY_TOKEN_HASH, tokenHash)) as MagicLinkRow | undefined)
    },
    async consume(id, at) {
      const row = await db
        .updateTable('magic_links')
        .set({ used_at: at })
        .where('id', '=', id)
        .where('used_at', 'is', null)
        .where('expires_at', '>', at)
        .returningAll()
        .executeTakeFirst()
      return toLink(row)
    },
    async consumeOthers(email, exceptId, at) {
      return idsOf(await consumeLiveLinks(email, at).where('id', '<>', exceptId).returning('id').execute())
    },
    async consumeAllOf(email, at) {
      return idsOf(await consumeLiveLinks(email, at).returning('id').execute())
    },
    async countCodeTry(id, maxTries) {
      const row = await db
        .updateTable('magic_links')
        .set(eb => ({ code_tries: eb('code_tries', '+', 1) }))
        .where('id', '=', id)
        .where('code_tries', '<', maxTries)
        .returningAll()
        .executeTakeFirst()
      return toLink(row)
    },
    sendHistory: (bucket, limits) => sendHistory(lookUp, bucket, limits),
    lockSendBuckets: buckets => lockSendBuckets(db, buckets),
    clampFutureSends: (buckets, now) => clampFutureSends(db, buckets, now),
    sendHistories: (locked, limits) => sendHistories(db, locked, limits),
    recordSend: (buckets, at) => recordSend(db, buckets, at),
    async lockAddress(email) {
      await lockSendBuckets(db, bucketNamesOf(email))
    },
    async forgetAddress(email, erased) {
      await db.updateTable('magic_links').set({ email: erased }).where('email', '=', email).execute()
      await forgetSends(db, ownBucketNamesOf(email))
    },
    clearSends: bucket => clearSends(db, bucket),
    sendTimesOf: (bucket, since, limit) => sendTimesOf(db, bucket, since, limit),
    async prune(linksBefore, sendsBefore, batch) {
      const prunableIds = db
        .selectFrom('magic_links')
        .select('id')
        .where('expires_at', '<', linksBefore)
        .limit(batch)
      const removedLinkCount = countOf(
        await db.deleteFrom('magic_links').where('id', 'in', prunableIds).executeTakeFirst(),
      )
      return removedLinkCount + (await atomically(tx => pruneSends(tx, sendsBefore, batch)))
    },
  }

  /** The update that consumes the links to an address that are neither used nor expired. */
  function consumeLiveLinks(email: EmailAddress, at: number) {
    return db
      .updateTable('magic_links')
      .set({ used_at: at })
      .where('email', '=', email)
      .where('used_at', 'is', null)
      .where('expires_at', '>', at)
  }
}

function idsOf(rows: { id: string }[]): string[] {
  return rows.map(row => row.id)
}

function toRow(link: MagicLink): MagicLinkRow {
  return {
    id: link.id,
    token_hash: link.tokenHash,
    code_hash: link.codeHash,
    email: link.email,
    app_id: link.appId,
    created_at: link.createdAt,
    expires_at: link.expiresAt,
    used_at: link.usedAt,
    code_tries: link.codeTries,
    locale: link.locale,
  }
}

function toLink(row: MagicLinkRow | undefined): MagicLink | null {
  if (!row) return null
  return {
    id: row.id,
    tokenHash: row.token_hash,
    codeHash: row.code_hash,
    email: row.email,
    appId: row.app_id,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    usedAt: row.used_at,
    codeTries: row.code_tries,
    locale: row.locale,
  }
}
