import { isIP } from 'node:net'
import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import type { ChangeLimits } from '../change-limits.ts'
import type { Clock, Instant } from '../clock.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import { createAddressRule } from '../outgoing/addresses.ts'
import type { Outgoing } from '../outgoing/outgoing.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import { attempt } from './attempt.ts'
import { targetOf } from './delivery.ts'
import { newWebhookSecret } from './signature.ts'
import {
  type DeliveryState,
  MAX_SECRETS,
  MAX_URL_LENGTH,
  MAX_WEBHOOKS,
  type Webhook,
  type WebhookDelivery,
  type WebhookSecret,
} from './webhook.ts'
import { webhookChange, webhookCreated, webhookUpdated } from './webhook-changes.ts'
import { TEST_EVENT, type WebhookEventType } from './webhook-event.ts'

/** An endpoint as administrators see it. */
export interface WebhookStatus extends Webhook {
  secrets: Pick<WebhookSecret, 'id' | 'createdAt'>[]
  /** Number of queued events. */
  waiting: number
  /** When the oldest queued event was written; null if none is queued. */
  oldestWaitingAt: Instant | null
}

export interface NewSecret {
  id: string
  /** The secret in plain text, which no later call returns. */
  secret: string
}

export interface WebhookChange {
  url?: string
  /** Types of events to subscribe to; an empty list means all types. */
  events?: WebhookEventType[]
  enabled?: boolean
}

/** The operator's webhook endpoints. Every change by an administrator is audited. */
export interface Webhooks {
  /** All endpoints, oldest first. */
  list(): Promise<WebhookStatus[]>
  /** @throws KeywayError `not_found` */
  find(id: string): Promise<WebhookStatus>
  /** @throws KeywayError `invalid_request`, also if there are MAX_WEBHOOKS endpoints already */
  create(
    wanted: { url: string; events: WebhookEventType[] },
    by: ActedBy,
  ): Promise<{ webhook: WebhookStatus; secret: string }>
  /** Enabling an endpoint sends its queued events. @throws KeywayError `not_found`, `invalid_request` */
  change(id: string, change: WebhookChange, by: ActedBy): Promise<WebhookStatus>
  /** Removes an endpoint; its queued events are not sent. @throws KeywayError `not_found` */
  remove(id: string, by: ActedBy): Promise<void>
  /**
   * Adds a secret. Each body is signed with all secrets that the endpoint has, so that the receiver can adopt the new
   * secret before an older one is removed.
   *
   * @throws KeywayError `not_found`; `invalid_request` if there are MAX_SECRETS already
   */
  addSecret(id: string, by: ActedBy): Promise<NewSecret>
  /** @throws KeywayError `not_found`; `invalid_request` if it is the endpoint's only secret */
  removeSecret(id: string, secretId: string, by: ActedBy): Promise<void>
  /**
   * Sends a test event now, also to a disabled endpoint, and returns the result.
   *
   * @throws KeywayError `not_found`, `rate_limited`
   */
  test(id: string, by: ActedBy): Promise<WebhookDelivery>
  /** The events of an endpoint, newest first; in all states if `state` is null. @throws KeywayError `not_found` */
  deliveries(id: string, state: DeliveryState | null, page: PageRequest): Promise<Slice<WebhookDelivery>>
  /**
   * Queues a delivered, failed or dropped event again, under the same id and number.
   *
   * @throws KeywayError `not_found`; `invalid_request` if it is queued already
   */
  sendAgain(deliveryId: string, by: ActedBy): Promise<WebhookDelivery>
}

export interface WebhookDeps {
  storage: Storage
  clock: Clock
  secrets: Secrets
  audit: Audit
  changeLimits: ChangeLimits
  privateNetworks: readonly string[]
  call: Outgoing
}

export function createWebhooks(deps: WebhookDeps): Webhooks {
  const { storage, clock, secrets, audit, changeLimits, privateNetworks } = deps
  const { webhooks, webhookDeliveries } = storage.store

  return {
    async list() {
      return statusOf(await webhooks.list())
    },

    find: statusById,

    async create({ url, events }, by) {
      assertUrl(url)
      const now = clock.now()
      const webhook: Webhook = {
        id: newId(now),
        url,
        events: [...new Set(events)],
        createdAt: now,
        disabledAt: null,
        disabledBy: null,
        dropped: 0,
      }
      const { secret, secretRow } = newSecret(webhook.id, now)
      const outcome = await audit.perform<'created' | 'too_many'>(
        by,
        async tx => {
          await tx.webhooks.lockAll()
          if ((await tx.webhooks.list()).length >= MAX_WEBHOOKS) return withoutChanges('too_many')
          await tx.webhooks.insert(webhook)
          await tx.webhooks.insertSecret(secretRow)
          tx.publish({ type: 'webhooks.changed' })
          return auditedOutcome('created', webhookCreated(webhook))
        },
        async store => ((await store.webhooks.find(webhook.id)) ? 'created' : undefined),
      )
      if (outcome === 'too_many')
        throw fieldError(
          'url',
          `cannot be added: there are ${MAX_WEBHOOKS} webhooks already; remove one first`,
        )
      return { webhook: await statusById(webhook.id), secret }
    },

    async change(id, { url, events, enabled }, by) {
      if (url !== undefined) assertUrl(url)
      const now = clock.now()
      const changedWebhook = await audit.perform<Webhook | null>(by, async tx => {
        const before = await tx.webhooks.lock(id)
        if (!before) return withoutChanges(null)
        const wasEnabled = before.disabledAt === null
        const after = await tx.webhooks.update(id, {
          ...(url !== undefined && { url }),
          ...(events !== undefined && { events: [...new Set(events)] }),
          ...(enabled === true && { disabledAt: null, disabledBy: null }),
          ...(enabled === false && wasEnabled && { disabledAt: now, disabledBy: 'person' }),
        })
        if (JSON.stringify(before) === JSON.stringify(after)) return withoutChanges(after)
        tx.publish({ type: 'webhooks.changed' })
        if (enabled) {
          await tx.webhookDeliveries.resetAttempts(id)
          tx.publish({ type: 'webhook.queued' })
        }
        return auditedOutcome(after, webhookUpdated(before, after!))
      })
      if (!changedWebhook) throw webhookNotFound()
      return statusById(id)
    },

    async remove(id, by) {
      const isRemoved = await audit.perform(by, async tx => {
        if (!(await tx.webhooks.remove(id, clock.now()))) return withoutChanges(false)
        tx.publish({ type: 'webhooks.changed' })
        return auditedOutcome(true, webhookChange('webhook.removed', id))
      })
      if (!isRemoved) throw webhookNotFound()
    },

    async addSecret(id, by) {
      const { secret, secretRow } = newSecret(id, clock.now())
      const outcome = await audit.perform<'created' | 'not_found' | 'too_many'>(by, async tx => {
        if (!(await tx.webhooks.lock(id))) return withoutChanges('not_found')
        if ((await tx.webhooks.secrets([id])).length >= MAX_SECRETS) return withoutChanges('too_many')
        await tx.webhooks.insertSecret(secretRow)
        tx.publish({ type: 'webhooks.changed' })
        return auditedOutcome('created', {
          ...webhookChange('webhook.secret_created', id),
          after: { secret_id: secretRow.id },
        })
      })
      if (outcome === 'not_found') throw webhookNotFound()
      if (outcome === 'too_many')
        throw fieldError('id', `is of a webhook with ${MAX_SECRETS} secrets already; remove an old one first`)
      return { id: secretRow.id, secret }
    },

    async removeSecret(id, secretId, by) {
      const outcome = await audit.perform<'removed' | 'not_found' | 'only_secret'>(by, async tx => {
        if (!(await tx.webhooks.lock(id))) return withoutChanges('not_found')
        const storedSecrets = await tx.webhooks.secrets([id])
        if (!storedSecrets.some(secret => secret.id === secretId)) return withoutChanges('not_found')
        if (storedSecrets.length === 1) return withoutChanges('only_secret')
        await tx.webhooks.removeSecret(id, secretId)
        tx.publish({ type: 'webhooks.changed' })
        return auditedOutcome('removed', {
          ...webhookChange('webhook.secret_removed', id),
          after: { secret_id: secretId },
        })
      })
      if (outcome === 'not_found') throw new KeywayError('not_found', 'There is no such secret.')
      if (outcome === 'only_secret')
        throw fieldError(
          'secret_id',
          'is that of the only secret, without which nothing can be signed; create another first',
        )
    },

    async test(id, by) {
      changeLimits.count(`webhook-test:${by.actor.id}`)
      const target = await targetOf(deps, id, { evenIfDisabled: true })
      if (!target) throw webhookNotFound()
      const at = clock.now()
      const deliveryId = newId(at)
      const event = {
        type: TEST_EVENT,
        subject: { type: 'webhook' as const, id },
        at,
        data: { webhook_id: id },
      } as const
      const delivery = await audit.perform(by, async tx => {
        const testDelivery = await tx.webhookDeliveries.insertTest(id, deliveryId, event)
        return auditedOutcome(testDelivery, webhookChange('webhook.tested', id))
      })
      const result = await attempt(deps, target, delivery)
      const state = result.error === null ? 'delivered' : 'failed'
      await webhookDeliveries.recordTest(deliveryId, state, result)
      return (await webhookDeliveries.find(deliveryId)) ?? { ...delivery, state, lastAttempt: result }
    },

    async deliveries(id, state, page) {
      if (!(await webhooks.find(id))) throw webhookNotFound()
      return webhookDeliveries.list(id, state, page)
    },

    async sendAgain(deliveryId, by) {
      const outcome = await audit.perform<WebhookDelivery | 'not_found' | 'waiting'>(by, async tx => {
        const before = await tx.webhookDeliveries.find(deliveryId)
        if (!before || !(await tx.webhooks.find(before.webhookId))) return withoutChanges('not_found')
        const after = await tx.webhookDeliveries.requeue(deliveryId, clock.now())
        if (!after) return withoutChanges('waiting')
        tx.publish({ type: 'webhook.queued' })
        const states = {
          before: { state: before.state },
          after: { state: after.state, delivery_id: deliveryId },
        }
        return auditedOutcome(after, { ...webhookChange('webhook.sent_again', before.webhookId), ...states })
      })
      if (outcome === 'not_found') throw new KeywayError('not_found', 'There is no such delivery.')
      if (outcome === 'waiting') throw fieldError('id', 'is of a delivery that waits already')
      return outcome as WebhookDelivery
    },
  }

  async function statusById(id: string): Promise<WebhookStatus> {
    const webhook = await webhooks.find(id)
    if (!webhook) throw webhookNotFound()
    return (await statusOf([webhook]))[0]!
  }

  async function statusOf(rows: Webhook[]): Promise<WebhookStatus[]> {
    const [allSecrets, waiting] = await Promise.all([
      webhooks.secrets(rows.map(({ id }) => id)),
      webhookDeliveries.waiting(),
    ])
    return rows.map(webhook => ({
      ...webhook,
      secrets: allSecrets
        .filter(({ webhookId }) => webhookId === webhook.id)
        .map(({ id, createdAt }) => ({ id, createdAt })),
      waiting: waiting.get(webhook.id)?.count ?? 0,
      oldestWaitingAt: waiting.get(webhook.id)?.oldestAt ?? null,
    }))
  }

  function newSecret(webhookId: string, now: Instant): { secret: string; secretRow: WebhookSecret } {
    const [id, secret] = [newId(now), newWebhookSecret()]
    const sealedSecret = secrets.seal('webhook-secret', Buffer.from(secret), id)
    return { secret, secretRow: { id, webhookId, sealedSecret, createdAt: now } }
  }

  /**
   * Checks what is known without DNS; the addresses of a host name are checked at every call (outgoing/outgoing.ts).
   *
   * @throws KeywayError `invalid_request`
   */
  function assertUrl(text: string): void {
    const url = URL.parse(text)
    const host = url?.hostname.replace(/^\[(.*)\]$/, '$1') ?? ''
    if (!url || !/^https?:$/.test(url.protocol) || text.length > MAX_URL_LENGTH)
      throw fieldError('url', 'must be an https URL, for example "https://hooks.example.com/keyway"')
    if (url.username || url.password || url.hash)
      throw fieldError('url', 'must have no credentials and no fragment; bodies are signed instead')
    const addressRule = createAddressRule(privateNetworks)
    if (url.protocol === 'http:' && privateNetworks.length === 0)
      throw fieldError(
        'url',
        'must begin with https://; http is for the networks of KEYWAY_WEBHOOK_PRIVATE_NETWORKS',
      )
    const mayCall = addressRule.isListed(host) || (url.protocol === 'https:' && addressRule.isPublic(host))
    if (isIP(host) && !mayCall)
      throw fieldError('url', 'is an address that may not be called; see KEYWAY_WEBHOOK_PRIVATE_NETWORKS')
  }
}

function fieldError(field: string, message: string): KeywayError {
  return invalidRequest([{ field, message }])
}

function webhookNotFound(): KeywayError {
  return new KeywayError('not_found', 'There is no such webhook.')
}
