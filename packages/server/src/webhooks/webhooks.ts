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
  waiting: number
  /** When the oldest queued event was written. */
  oldestWaitingAt: Instant | null
}

export interface NewSecret {
  id: string
  /** Returned only here. */
  secret: string
}

export interface WebhookChange {
  url?: string
  /** Empty: all. */
  events?: WebhookEventType[]
  enabled?: boolean
}

/** The operator's endpoints. Acts of administrators on them are audited. */
export interface Webhooks {
  /** Oldest first. */
  list(): Promise<WebhookStatus[]>
  /** @throws KeywayError `not_found` */
  find(id: string): Promise<WebhookStatus>
  /** @throws KeywayError `invalid_request`, also where there are too many */
  create(
    wanted: { url: string; events: WebhookEventType[] },
    by: ActedBy,
  ): Promise<{ webhook: WebhookStatus; secret: string }>
  /** Waiting events are sent when it is enabled again. @throws KeywayError `not_found`, `invalid_request` */
  change(id: string, change: WebhookChange, by: ActedBy): Promise<WebhookStatus>
  /** Removes an endpoint; its queued events are not sent. @throws KeywayError `not_found` */
  remove(id: string, by: ActedBy): Promise<void>
  /** Each body is signed with all secrets, until the old one is removed. @throws KeywayError `not_found`, `invalid_request` */
  addSecret(id: string, by: ActedBy): Promise<NewSecret>
  /** @throws KeywayError `not_found`, `invalid_request` (the only one) */
  removeSecret(id: string, secretId: string, by: ActedBy): Promise<void>
  /**
   * Sends a test event now, also to a disabled endpoint, and returns the result.
   *
   * @throws KeywayError `not_found`, `rate_limited`
   */
  test(id: string, by: ActedBy): Promise<WebhookDelivery>
  /** Newest first. @throws KeywayError `not_found` */
  deliveries(id: string, state: DeliveryState | null, page: PageRequest): Promise<Slice<WebhookDelivery>>
  /** Queues a settled event again, under the same id and number. @throws KeywayError `not_found`, `invalid_request` */
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
      const { secret, sealed } = newSecret(webhook.id, now)
      const outcome = await audit.perform<'made' | 'full'>(
        by,
        async tx => {
          await tx.webhooks.lockAll()
          if ((await tx.webhooks.list()).length >= MAX_WEBHOOKS) return withoutChanges('full')
          await tx.webhooks.insert(webhook)
          await tx.webhooks.insertSecret(sealed)
          tx.publish({ type: 'webhooks.changed' })
          return auditedOutcome('made', webhookCreated(webhook))
        },
        async store => ((await store.webhooks.find(webhook.id)) ? 'made' : undefined),
      )
      if (outcome === 'full')
        throw refused('url', `cannot be added: there are ${MAX_WEBHOOKS} webhooks already; remove one first`)
      return { webhook: await statusById(webhook.id), secret }
    },

    async change(id, { url, events, enabled }, by) {
      if (url !== undefined) assertUrl(url)
      const now = clock.now()
      const changed = await audit.perform<Webhook | null>(by, async tx => {
        const before = await tx.webhooks.lock(id)
        if (!before) return withoutChanges(null)
        const isEnabled = before.disabledAt === null
        const after = await tx.webhooks.update(id, {
          ...(url !== undefined && { url }),
          ...(events !== undefined && { events: [...new Set(events)] }),
          ...(enabled === true && { disabledAt: null, disabledBy: null }),
          ...(enabled === false && isEnabled && { disabledAt: now, disabledBy: 'person' }),
        })
        if (JSON.stringify(before) === JSON.stringify(after)) return withoutChanges(after)
        tx.publish({ type: 'webhooks.changed' })
        // Events that were queued while it was disabled are retried from the start.
        if (enabled) {
          await tx.webhookDeliveries.beginAnew(id)
          tx.publish({ type: 'webhook.queued' })
        }
        return auditedOutcome(after, webhookUpdated(before, after!))
      })
      if (!changed) throw noWebhook()
      return statusById(id)
    },

    async remove(id, by) {
      const removed = await audit.perform(by, async tx => {
        if (!(await tx.webhooks.remove(id, clock.now()))) return withoutChanges(false)
        tx.publish({ type: 'webhooks.changed' })
        return auditedOutcome(true, webhookChange('webhook.removed', id))
      })
      if (!removed) throw noWebhook()
    },

    async addSecret(id, by) {
      const { secret, sealed } = newSecret(id, clock.now())
      const outcome = await audit.perform<'made' | 'gone' | 'full'>(by, async tx => {
        if (!(await tx.webhooks.lock(id))) return withoutChanges('gone')
        if ((await tx.webhooks.secrets([id])).length >= MAX_SECRETS) return withoutChanges('full')
        await tx.webhooks.insertSecret(sealed)
        tx.publish({ type: 'webhooks.changed' })
        return auditedOutcome('made', {
          ...webhookChange('webhook.secret_created', id),
          after: { secret_id: sealed.id },
        })
      })
      if (outcome === 'gone') throw noWebhook()
      if (outcome === 'full')
        throw refused('id', `is of a webhook with ${MAX_SECRETS} secrets already; remove an old one first`)
      return { id: sealed.id, secret }
    },

    async removeSecret(id, secretId, by) {
      const outcome = await audit.perform<'removed' | 'gone' | 'only'>(by, async tx => {
        if (!(await tx.webhooks.lock(id))) return withoutChanges('gone')
        const present = await tx.webhooks.secrets([id])
        if (!present.some(secret => secret.id === secretId)) return withoutChanges('gone')
        if (present.length === 1) return withoutChanges('only')
        await tx.webhooks.removeSecret(id, secretId)
        tx.publish({ type: 'webhooks.changed' })
        return auditedOutcome('removed', {
          ...webhookChange('webhook.secret_removed', id),
          after: { secret_id: secretId },
        })
      })
      if (outcome === 'gone') throw new KeywayError('not_found', 'There is no such secret.')
      if (outcome === 'only')
        throw refused(
          'secret_id',
          'is that of the only secret, without which nothing can be signed; create another first',
        )
    },

    async test(id, by) {
      changeLimits.count(`webhook-test:${by.actor.id}`)
      const target = await targetOf(deps, id, { evenIfDisabled: true })
      if (!target) throw noWebhook()
      const at = clock.now()
      const deliveryId = newId(at)
      const event = {
        type: TEST_EVENT,
        subject: { type: 'webhook' as const, id },
        at,
        data: { webhook_id: id },
      } as const
      const delivery = await audit.perform(by, async tx => {
        const inserted = await tx.webhookDeliveries.insertTest(id, deliveryId, event)
        return auditedOutcome(inserted, webhookChange('webhook.tested', id))
      })
      const result = await attempt(deps, target, delivery)
      const state = result.error === null ? 'delivered' : 'failed'
      await webhookDeliveries.recordTest(deliveryId, state, result)
      return (await webhookDeliveries.find(deliveryId)) ?? { ...delivery, state, last: result }
    },

    async deliveries(id, state, page) {
      if (!(await webhooks.find(id))) throw noWebhook()
      return webhookDeliveries.list(id, state, page)
    },

    async sendAgain(deliveryId, by) {
      const outcome = await audit.perform<WebhookDelivery | 'gone' | 'waiting'>(by, async tx => {
        const before = await tx.webhookDeliveries.find(deliveryId)
        if (!before || !(await tx.webhooks.find(before.webhookId))) return withoutChanges('gone')
        const after = await tx.webhookDeliveries.requeue(deliveryId, clock.now())
        if (!after) return withoutChanges('waiting')
        tx.publish({ type: 'webhook.queued' })
        const states = {
          before: { state: before.state },
          after: { state: after.state, delivery_id: deliveryId },
        }
        return auditedOutcome(after, { ...webhookChange('webhook.sent_again', before.webhookId), ...states })
      })
      if (outcome === 'gone') throw new KeywayError('not_found', 'There is no such delivery.')
      if (outcome === 'waiting') throw refused('id', 'is of a delivery that waits already')
      return outcome as WebhookDelivery
    },
  }

  async function statusById(id: string): Promise<WebhookStatus> {
    const webhook = await webhooks.find(id)
    if (!webhook) throw noWebhook()
    return (await statusOf([webhook]))[0]!
  }

  async function statusOf(rows: Webhook[]): Promise<WebhookStatus[]> {
    const [secretsOf, waiting] = await Promise.all([
      webhooks.secrets(rows.map(({ id }) => id)),
      webhookDeliveries.waiting(),
    ])
    return rows.map(webhook => ({
      ...webhook,
      secrets: secretsOf
        .filter(({ webhookId }) => webhookId === webhook.id)
        .map(({ id, createdAt }) => ({ id, createdAt })),
      waiting: waiting.get(webhook.id)?.count ?? 0,
      oldestWaitingAt: waiting.get(webhook.id)?.oldestAt ?? null,
    }))
  }

  function newSecret(webhookId: string, now: Instant): { secret: string; sealed: WebhookSecret } {
    const [id, secret] = [newId(now), newWebhookSecret()]
    const sealedSecret = secrets.seal('webhook-secret', Buffer.from(secret), id)
    return { secret, sealed: { id, webhookId, sealedSecret, createdAt: now } }
  }

  /** Checks that need no look-up; names are checked at every call. @throws KeywayError `invalid_request` */
  function assertUrl(text: string): void {
    const url = URL.parse(text)
    const host = url?.hostname.replace(/^\[(.*)\]$/, '$1') ?? ''
    if (!url || !/^https?:$/.test(url.protocol) || text.length > MAX_URL_LENGTH)
      throw refused('url', 'must be an https URL, for example "https://hooks.example.com/keyway"')
    if (url.username || url.password || url.hash)
      throw refused('url', 'must have no credentials and no fragment; bodies are signed instead')
    const rule = createAddressRule(privateNetworks)
    if (url.protocol === 'http:' && privateNetworks.length === 0)
      throw refused(
        'url',
        'must begin with https://; http is for the networks of KEYWAY_WEBHOOK_PRIVATE_NETWORKS',
      )
    const mayCall = rule.isListed(host) || (url.protocol === 'https:' && rule.isPublic(host))
    if (isIP(host) && !mayCall)
      throw refused('url', 'is an address that may not be called; see KEYWAY_WEBHOOK_PRIVATE_NETWORKS')
  }
}

function refused(field: string, message: string): KeywayError {
  return invalidRequest([{ field, message }])
}

function noWebhook(): KeywayError {
  return new KeywayError('not_found', 'There is no such webhook.')
}
