import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import { BY_SETTING } from '../audit/audit-event.ts'
import { type Clock, HOUR, type Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { backoff } from '../outbox/backoff.ts'
import { retryUntilLeaseEnds, type Schedule } from '../outbox/delivery.ts'
import { isInterrupted } from '../outbox/interruption.ts'
import { createWorker, type Worker } from '../outbox/leased-work.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Outgoing } from '../outgoing/outgoing.ts'
import type { Secrets } from '../secrets.ts'
import type { Storage, Transaction } from '../store.ts'
import { attempt, type Target } from './attempt.ts'
import {
  type AttemptResult,
  GIVE_UP_AFTER,
  LEASE,
  MAX_WEBHOOKS,
  type Webhook,
  type WebhookDelivery,
} from './webhook.ts'
import { webhookUpdated } from './webhook-changes.ts'
import { TEST_EVENT } from './webhook-event.ts'
import type { DeliveryOutcome, LeasedQueue } from './webhook-store.ts'

/** Maximum number of concurrent calls of one node to one endpoint, so that a slow endpoint does not delay others. */
export const CONCURRENT_CALLS = 8
/** Maximum number of events of one subject that are sent in a row, so that other subjects need not wait for long. */
const MAX_SENT_IN_A_ROW = 10
/** The longest delay between attempts (2 s, 4 s, 8 s … with jitter). */
export const MAX_WEBHOOK_BACKOFF = HOUR
/** Maximum number of administrators who get a mail when an endpoint is disabled. */
const MAX_MAILED_ADMINISTRATORS = 20

export interface WebhookDeliveryDeps {
  storage: Storage
  clock: Clock
  secrets: Secrets
  log: Log
  audit: Audit
  outbox: Outbox
  call: Outgoing
  /** The node that leases queues: other nodes release its leases once it is dead. With null, leases only expire. */
  nodeId?: string | null
  schedule?: Schedule
  random?: () => number
}

const BY_SERVICE: ActedBy = { actor: BY_SETTING, caller: null, requestId: null, reason: null }

/**
 * Sends queued events to their endpoints, at least once. The events of one subject are sent sequentially: their queue
 * is leased as a whole, and an event waits until the one before was delivered or given up.
 */
export function createDeliveryWorker(deps: WebhookDeliveryDeps): Worker {
  const { storage, clock, log, audit, outbox, nodeId = null, random = Math.random } = deps
  const { webhooks, webhookDeliveries: deliveries } = storage.store
  /** Number of calls in progress, by the id of the endpoint. */
  const callCounts = new Map<string, number>()
  /**
   * Number of changes of endpoints so far. After a change this node releases the queues that it has leased: the next
   * lease of each reads URL and secrets again.
   */
  let changeCount = 0
  storage.events.subscribe(({ type }) => {
    if (type === 'webhooks.changed') changeCount++
  })

  return createWorker<LeasedQueue>(
    {
      name: 'webhook queue',
      queuedEvent: 'webhook.queued',
      concurrency: CONCURRENT_CALLS * MAX_WEBHOOKS,
      leaseTime: LEASE,
      lease: async (now, leasedUntil) => deliveries.lease(now, leasedUntil, await capacities(), nodeId),
      releaseUnknown: async idsInProgress => nodeId && deliveries.releaseUnknown(nodeId, idsInProgress),
      nextDue: async () => deliveries.nextDue((await capacities()).map(({ webhookId }) => webhookId)),
      run,
    },
    deps,
  )

  /** The enabled endpoints to which this node may start further calls, each with the number of these calls. */
  async function capacities(): Promise<{ webhookId: string; capacity: number }[]> {
    const enabledWebhooks = (await webhooks.list()).filter(({ disabledAt }) => disabledAt === null)
    return enabledWebhooks
      .map(({ id }) => ({ webhookId: id, capacity: CONCURRENT_CALLS - (callCounts.get(id) ?? 0) }))
      .filter(({ capacity }) => capacity > 0)
  }

  async function run(lease: LeasedQueue, abort: AbortController): Promise<void> {
    const { webhookId } = lease
    callCounts.set(webhookId, (callCounts.get(webhookId) ?? 0) + 1)
    try {
      await sendQueue(lease, abort.signal)
    } finally {
      callCounts.set(webhookId, callCounts.get(webhookId)! - 1)
    }
  }

  async function sendQueue(lease: LeasedQueue, signal: AbortSignal): Promise<void> {
    const changeCountBefore = changeCount
    const target = await targetOf(deps, lease.webhookId)
    if (!target) return deliveries.release(lease)
    let currentLease = lease
    let outcome: DeliveryOutcome | null = null
    for (let sent = 0; ; sent++) {
      const leasedUntil = clock.now() + LEASE
      const next: WebhookDelivery | null | 'lost' = await retryUntilLeaseEnds(
        deps,
        currentLease.leasedUntil,
        () => deliveries.advance(currentLease, outcome, leasedUntil),
      )
      if (next === null || next === 'lost') return
      currentLease = { ...currentLease, leasedUntil }
      if (sent === MAX_SENT_IN_A_ROW || changeCount !== changeCountBefore || signal.aborted)
        return deliveries.release(currentLease)
      outcome = await send(next, target, signal)
    }
  }

  async function send(
    delivery: WebhookDelivery,
    target: Target,
    signal: AbortSignal,
  ): Promise<DeliveryOutcome> {
    const result = await attempt(deps, target, delivery, signal)
    const deliveryId = delivery.id
    const logFields = { webhook_id: delivery.webhookId, delivery_id: deliveryId, type: delivery.type }
    if (result.error === null) {
      log.debug(logFields, 'an event was delivered')
      return { deliveryId, ...result, state: 'delivered' }
    }
    const failureFields = { ...logFields, attempts: delivery.attempts + 1, failure: result.error }
    if (isInterrupted(signal) || mayRetry(delivery, result)) {
      log.debug(failureFields, 'an event could not be delivered; trying again later')
      const nextAttemptAt = clock.now() + backoff(delivery.attempts + 1, random(), MAX_WEBHOOK_BACKOFF)
      return { deliveryId, ...result, state: 'waiting', nextAttemptAt }
    }
    log.warn(failureFields, 'an event could not be delivered and is given up')
    await disableIfDead(delivery, result)
    return { deliveryId, ...result, state: 'failed' }
  }

  /** Disables the endpoint if it has accepted no event since the first attempt to send this one. */
  async function disableIfDead(
    { webhookId, firstAttemptAt, type }: WebhookDelivery,
    { at, error }: AttemptResult,
  ) {
    if (type === TEST_EVENT || firstAttemptAt === null) return
    if (await deliveries.hasDeliveredSince(webhookId, firstAttemptAt)) return
    // Created before the transaction, so that a retried transaction queues each mail once.
    const mailIds = Array.from({ length: MAX_MAILED_ADMINISTRATORS }, () => newId(at))
    const disabledWebhook = await audit.perform<Webhook | null>(BY_SERVICE, async tx => {
      const before = await tx.webhooks.lock(webhookId)
      if (!before || before.disabledAt !== null) return withoutChanges(null)
      const after = await tx.webhooks.update(webhookId, { disabledAt: at, disabledBy: 'failures' })
      await mailAdministrators(tx, before, error ?? '', at, mailIds)
      tx.publish({ type: 'webhooks.changed' })
      return auditedOutcome(after, webhookUpdated(before, after!))
    })
    if (disabledWebhook)
      log.error({ webhook_id: webhookId }, 'a webhook failed for three days and was disabled')
  }

  async function mailAdministrators(
    tx: Transaction,
    { id, url }: Webhook,
    failure: string,
    at: Instant,
    mailIds: readonly string[],
  ): Promise<void> {
    const search = { role: 'admin' as const, status: 'active' as const }
    const { rows } = await tx.users.search(search, { limit: MAX_MAILED_ADMINISTRATORS, after: null })
    const content = { kind: 'webhook_disabled' as const, at, webhookId: id, host: new URL(url).host, failure }
    for (const [index, { id: userId, email }] of rows.entries())
      if (email) await outbox.enqueue(tx, { id: mailIds[index]!, recipient: email, userId, content, now: at })
  }
}

function mayRetry({ type, firstAttemptAt }: WebhookDelivery, { at }: AttemptResult): boolean {
  return type !== TEST_EVENT && (firstAttemptAt === null || at - firstAttemptAt < GIVE_UP_AFTER)
}

/** The URL and the decrypted secrets of an endpoint; null if it is removed, or disabled without `evenIfDisabled`. */
export async function targetOf(
  { storage, secrets }: Pick<WebhookDeliveryDeps, 'storage' | 'secrets'>,
  webhookId: string,
  { evenIfDisabled = false } = {},
): Promise<Target | null> {
  const { webhooks } = storage.store
  const [webhook, storedSecrets] = await Promise.all([
    webhooks.find(webhookId),
    webhooks.secrets([webhookId]),
  ])
  if (!webhook || (webhook.disabledAt !== null && !evenIfDisabled)) return null
  const secretTexts = storedSecrets.map(({ id, sealedSecret }) =>
    secrets.open('webhook-secret', sealedSecret, id).toString(),
  )
  return { url: webhook.url, secrets: secretTexts }
}
