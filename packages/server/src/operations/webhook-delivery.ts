import { SECOND } from '../clock.ts'
import { NODE_TIMEOUT_MS } from '../hub/presence-store.ts'
import type { Worker } from '../outbox/leased-work.ts'
import type { Services } from '../services.ts'
import { MAX_WAITING } from '../webhooks/webhook.ts'

/** How often queued events are counted, and endpoints are loaded whose event was lost. */
const INTERVAL = 5 * SECOND
/** Events that are dropped in one transaction. */
const DROP_BATCH = 1000
const DRAIN_MS = 3 * SECOND

export interface WebhookDelivery {
  start(): void
  /** Calls in progress have 3 seconds to finish; queued events are sent by other nodes, or after the next start. */
  stop(): Promise<void>
}

/**
 * Sends events to webhooks. The code is loaded once an endpoint exists; until then only the list of endpoints is read,
 * every five seconds.
 */
export function createWebhookDelivery(services: Services, nodeId: string): WebhookDelivery {
  const { storage, clock, log } = services
  const { webhooks, webhookDeliveries } = storage.store
  let worker: Promise<Worker> | undefined
  let checking: Promise<void> | undefined
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  let unsubscribe = () => {}

  return {
    start() {
      unsubscribe = storage.events.subscribe(({ type }) => {
        if (type === 'webhooks.changed' || type === 'events.gap') check()
      })
      timer = setInterval(check, INTERVAL)
      check()
    },
    async stop() {
      isStopped = true
      clearInterval(timer)
      unsubscribe()
      await checking
      await (await worker)?.stop(DRAIN_MS)
    },
  }

  /** Never runs concurrently with itself. */
  function check(): void {
    if (isStopped) return
    checking ??= startOrDrop()
      .catch(error => log.warn({ error: String(error) }, 'the delivery of webhooks failed; trying again'))
      .finally(() => {
        checking = undefined
      })
  }

  async function startOrDrop(): Promise<void> {
    if ((await webhooks.list()).length === 0) return
    worker ??= load()
    await worker
    await dropBeyond(services)
  }

  async function load(): Promise<Worker> {
    const [{ createWebhookDelivery }, { createOutgoing }] = await Promise.all([
      import('../webhooks/delivery.ts'),
      import('../outgoing/outgoing.ts'),
    ])
    const call = createOutgoing(services.config.webhookPrivateNetworks)
    const made = createWebhookDelivery({ ...services, call, nodeId })
    await webhookDeliveries.releaseAbandoned(clock.now() - NODE_TIMEOUT_MS)
    if (!isStopped) made.start()
    return made
  }
}

/** Drops queued events beyond the limit of an endpoint, the oldest agent events first. Returns how many. */
export async function dropBeyond(
  { storage, clock, log }: Pick<Services, 'storage' | 'clock' | 'log'>,
  most = MAX_WAITING,
): Promise<number> {
  const { webhookDeliveries } = storage.store
  let dropped = 0
  for (const [webhookId, { count }] of await webhookDeliveries.waiting()) {
    let excess = count - most
    while (excess > 0) {
      const gone = await webhookDeliveries.drop(webhookId, Math.min(excess, DROP_BATCH), clock.now())
      if (gone === 0) break
      excess -= gone
      dropped += gone
    }
    if (count > most)
      log.warn({ webhook_id: webhookId, dropped: count - most }, 'events of a webhook were dropped')
  }
  return dropped
}

/** The numbers of queued and of given up events over all endpoints, for metrics and `doctor`. */
export async function webhookBacklog({ storage, clock }: Pick<Services, 'storage' | 'clock'>) {
  const { webhooks, webhookDeliveries } = storage.store
  const endpoints = await webhooks.list()
  if (endpoints.length === 0) return { waiting: 0, oldestWaitingSeconds: 0, failed: 0, disabled: 0 }
  const queues = [...(await webhookDeliveries.waiting()).values()]
  const oldest = Math.min(clock.now(), ...queues.map(({ oldestAt }) => oldestAt))
  return {
    waiting: queues.reduce((sum, { count }) => sum + count, 0),
    oldestWaitingSeconds: (clock.now() - oldest) / SECOND,
    failed: await webhookDeliveries.countFailed(),
    disabled: endpoints.filter(({ disabledBy }) => disabledBy === 'failures').length,
  }
}
