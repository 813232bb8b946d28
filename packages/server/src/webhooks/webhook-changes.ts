import type { AuditChange, AuditedState, AuditType } from '../audit/audit-event.ts'
import type { Webhook } from './webhook.ts'

/** The audit record of a changed webhook. It only says that the URL changed, since a URL may contain a secret. */
export function webhookUpdated(before: Webhook, after: Webhook): AuditChange {
  const url = before.url === after.url ? null : { url: 'changed' }
  return {
    ...webhookChange('webhook.updated', after.id),
    before: stateOf(before),
    after: { ...stateOf(after), ...url },
  }
}

export function webhookCreated(webhook: Webhook): AuditChange {
  return { ...webhookChange('webhook.created', webhook.id), after: stateOf(webhook) }
}

export function webhookChange(type: AuditType, id: string): AuditChange {
  return { type, subject: { type: 'webhook', id, user_id: null }, before: null, after: null }
}

function stateOf({ events, disabledAt, disabledBy }: Webhook): AuditedState {
  return { events, enabled: disabledAt === null, disabled_by: disabledBy }
}
