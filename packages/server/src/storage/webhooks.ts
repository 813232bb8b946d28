import type { Webhook } from '../webhooks/webhook.ts'
import type { WebhookEventType } from '../webhooks/webhook-event.ts'
import type { WebhookStore } from '../webhooks/webhook-store.ts'
import type { WebhookRow } from './schema.ts'
import { countOf, type Statements, toList } from './statements.ts'

/** The name of a row of `instance` that serves only as a lock. */
const LOCK_NAME = 'webhooks-lock'

export function createWebhookStore({ db, atomically }: Statements): WebhookStore {
  return {
    async list() {
      const rows = await db
        .selectFrom('webhooks')
        .selectAll()
        .where('removed_at', 'is', null)
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      return rows.map(toWebhook)
    },
    async find(id) {
      const row = await db
        .selectFrom('webhooks')
        .selectAll()
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .executeTakeFirst()
      return row ? toWebhook(row) : null
    },
    async insert(webhook) {
      await db
        .insertInto('webhooks')
        .values({
          id: webhook.id,
          url: webhook.url,
          events: JSON.stringify(webhook.events),
          created_at: webhook.createdAt,
          disabled_at: webhook.disabledAt,
          disabled_by: webhook.disabledBy,
          removed_at: null,
          dropped: webhook.dropped,
        })
        .execute()
    },
    update: (id, { url, events, disabledAt, disabledBy }) =>
      updateWebhook(id, {
        ...(url !== undefined && { url }),
        ...(events !== undefined && { events: JSON.stringify(events) }),
        ...(disabledAt !== undefined && { disabled_at: disabledAt }),
        ...(disabledBy !== undefined && { disabled_by: disabledBy }),
      }),
    lock: id => updateWebhook(id, {}),
    async lockAll() {
      await db
        .insertInto('instance')
        .values({ name: LOCK_NAME, value: '' })
        .onConflict(conflict => conflict.column('name').doUpdateSet({ value: '' }))
        .execute()
    },
    remove: (id, at) =>
      atomically(async tx => {
        const row = await tx
          .updateTable('webhooks')
          .set({ removed_at: at, url: '' })
          .where('id', '=', id)
          .where('removed_at', 'is', null)
          .returningAll()
          .executeTakeFirst()
        await tx.deleteFrom('webhook_secrets').where('webhook_id', '=', id).execute()
        return row ? toWebhook(row) : null
      }),
    async secrets(webhookIds) {
      if (webhookIds.length === 0) return []
      const rows = await db
        .selectFrom('webhook_secrets')
        .selectAll()
        .where('webhook_id', 'in', [...webhookIds])
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      return rows.map(row => ({
        id: row.id,
        webhookId: row.webhook_id,
        sealedSecret: row.sealed_secret,
        createdAt: row.created_at,
      }))
    },
    async insertSecret({ id, webhookId, sealedSecret, createdAt }) {
      await db
        .insertInto('webhook_secrets')
        .values({ id, webhook_id: webhookId, sealed_secret: sealedSecret, created_at: createdAt })
        .execute()
    },
    async removeSecret(webhookId, id) {
      const deletion = db
        .deleteFrom('webhook_secrets')
        .where('id', '=', id)
        .where('webhook_id', '=', webhookId)
      return countOf(await deletion.executeTakeFirst()) > 0
    },
  }

  /** An empty `set` only locks the row: an update without changes is the only row lock that both engines have. */
  async function updateWebhook(id: string, set: Partial<WebhookRow>): Promise<Webhook | null> {
    const row = await db
      .updateTable('webhooks')
      .set(eb => ({ dropped: eb.ref('dropped'), ...set }))
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .returningAll()
      .executeTakeFirst()
    return row ? toWebhook(row) : null
  }
}

function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    url: row.url,
    events: toList(row.events) as WebhookEventType[],
    createdAt: row.created_at,
    disabledAt: row.disabled_at,
    disabledBy: row.disabled_by,
    dropped: row.dropped,
  }
}
