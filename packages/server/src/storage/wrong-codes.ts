import type { WrongCode } from '../magic-links/code-limits.ts'
import type { WrongCodeStore } from '../magic-links/wrong-code-store.ts'
import type { WrongCodeRow } from './schema.ts'
import { lockSendBuckets } from './send-limits.ts'
import { countOf, type Statements, toList } from './statements.ts'

/** The name of a row of `send_buckets` that is only locked, never counted, so that checks of codes are serialized. */
const LOCK_NAME = 'typed-codes'

export function createWrongCodeStore({ db }: Statements): WrongCodeStore {
  return {
    async lock() {
      await lockSendBuckets(db, [LOCK_NAME])
    },
    async findCounted(mailbox, since) {
      const rows = await db
        .selectFrom('wrong_codes')
        .selectAll()
        .where('at', '>', since)
        .where(eb => eb.or([eb('returning_browser', '=', 0), eb('mailbox', '=', mailbox)]))
        .execute()
      return rows.map(toWrongCode)
    },
    async insert(wrongCode) {
      await db.insertInto('wrong_codes').values(toRow(wrongCode)).execute()
    },
    async exists(id) {
      const query = db.selectFrom('wrong_codes').select('id').where('id', '=', id)
      return (await query.executeTakeFirst()) !== undefined
    },
    async forgive(linkId) {
      await db.deleteFrom('wrong_codes').where('link_id', '=', linkId).execute()
    },
    async clearMailbox(mailbox) {
      await db
        .deleteFrom('wrong_codes')
        .where('mailbox', '=', mailbox)
        .where('returning_browser', '=', 1)
        .execute()
      await db.updateTable('wrong_codes').set({ mailbox: '' }).where('mailbox', '=', mailbox).execute()
    },
    async prune(before, batch) {
      const prunableIds = db.selectFrom('wrong_codes').select('id').where('at', '<', before).limit(batch)
      return countOf(await db.deleteFrom('wrong_codes').where('id', 'in', prunableIds).executeTakeFirst())
    },
  }
}

function toRow(wrongCode: WrongCode): WrongCodeRow {
  return {
    id: wrongCode.id,
    link_id: wrongCode.linkId,
    at: wrongCode.at,
    mailbox: wrongCode.mailbox,
    returning_browser: wrongCode.isReturning ? 1 : 0,
    networks: JSON.stringify(wrongCode.networks),
  }
}

function toWrongCode(row: WrongCodeRow): WrongCode {
  return {
    id: row.id,
    linkId: row.link_id,
    at: row.at,
    mailbox: row.mailbox,
    isReturning: row.returning_browser === 1,
    networks: toList(row.networks),
  }
}
