import type { InboxMail, InboxStore } from '../outbox/outbox-store.ts'
import type { Schema } from './schema.ts'
import { countOf, type Statements } from './statements.ts'

export function createInboxStore({ db, atomically }: Statements): InboxStore {
  return {
    insert: (mail, maxMails) =>
      atomically(async tx => {
        await tx
          .insertInto('inbox')
          .values({
            id: mail.id,
            recipient: mail.recipient,
            sealed_mail: mail.sealedMail,
            created_at: mail.createdAt,
          })
          .onConflict(conflict => conflict.column('id').doNothing())
          .execute()
        const newestIds = tx
          .selectFrom('inbox')
          .select('id')
          .orderBy('created_at', 'desc')
          .orderBy('id', 'desc')
          .limit(maxMails)
        await tx.deleteFrom('inbox').where('id', 'not in', newestIds).execute()
      }),
    async list(recipient, limit) {
      const rows = await db
        .selectFrom('inbox')
        .selectAll()
        .$if(recipient !== null, query => query.where('recipient', '=', recipient!))
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .execute()
      return rows.map(toMail)
    },
    async find(id) {
      const row = await db.selectFrom('inbox').selectAll().where('id', '=', id).executeTakeFirst()
      return row ? toMail(row) : null
    },
    async forgetRecipient(recipient) {
      await db.deleteFrom('inbox').where('recipient', '=', recipient).execute()
    },
    async prune(before) {
      return countOf(await db.deleteFrom('inbox').where('created_at', '<', before).executeTakeFirst())
    },
  }
}

function toMail(row: Schema['inbox']): InboxMail {
  return { id: row.id, recipient: row.recipient, sealedMail: row.sealed_mail, createdAt: row.created_at }
}
