import { SECOND } from '../clock.ts'
import { NODE_TIMEOUT_MS } from '../hub/presence-store.ts'
import type { Worker } from '../outbox/leased-work.ts'
import type { Services } from '../services.ts'
import { MAX_WAITING } from '../webhooks/webhook.ts'

/** Interval at which queued events are counted, and at which endpoints are found whose `webhooks.changed` was lost. */
const CHECK_INTERVAL = 5 * SECOND
/** Maximum number of events that one transaction drops. */
const DROP_BATCH = 1000
/** How long calls in progress may take when the process stops. */
const DRAIN_MS = 3 * SECOND

export interface WebhookDelivery {
  start(): void
  /** Calls in progress have 3 seconds to finish; queued events are sent by other nodes, or after the next start. */
  stop(): Promise<void>
}

/**
 * Sends events to webhooks. The code that sends them is loaded once an endpoint exists; until then only the list of
 * endpoints is read, every five seconds.
 */
export function createWebhookDelivery(services: Services, nodeId: string): WebhookDelivery {
  const { storage, clock, log } = services
  const { webhooks, webhookDeliveries } = storage.store
  let worker: Promise<Worker> | undefined
  let runningCheck: Promise<void> | undefined
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  let unsubscribe = () => {}

  return {
    start() {
      unsubscribe = storage.events.subscribe(({ type }) => {
        if (type === 'webhooks.changed' || type === 'events.gap') check()
      })
      timer = setInterval(check, CHECK_INTERVAL)
      check()
    },
    async stop() {
      isStopped = true
      clearInterval(timer)
      unsubscribe()
      await runningCheck
      await (await worker)?.stop(DRAIN_MS)
    },
  }

  function check(): void {
    if (isStopped) return
    runningCheck ??= startAndTrimQueues()
      .catch(error => log.warn({ error: String(error) }, 'the delivery of webhooks failed; trying again'))
      .finally(() => {
        runningCheck = undefined
      })
  }

  /** Starts the delivery if there is an endpoint, and drops events beyond the limits of the queues. */
  async function startAndTrimQueues(): Promise<void> {
    if ((await webhooks.list()).length === 0) return
    worker ??= load()
    await worker
    await dropExcess(services)
  }

  async function load(): Promise<Worker> {
    const [{ createDeliveryWorker }, { createOutgoing }] = await Promise.all([
      import('../webhooks/delivery.ts'),
      import('../outgoing/outgoing.ts'),
    ])
    const call = createOutgoing(services.config.webhookPrivateNetworks)
    const createdWorker = createDeliveryWorker({ ...services, call, nodeId })
    await webhookDeliveries.releaseAbandoned(clock.now() - NODE_TIMEOUT_MS)
    if (!isStopped) createdWorker.start()
    return createdWorker
  }
}

/**
 * Drops the queued events of each endpoint beyond `maxWaiting`, the oldest events of agents first. Returns the number
 * of dropped events.
 */
export async function dropExcess(
  { storage, clock, log }: Pick<Services, 'storage' | 'clock' | 'log'>,
  maxWaiting = MAX_WAITING,
): Promise<number> {
  const { webhookDeliveries } = storage.store
  let droppedCount = 0
  for (const [webhookId, queue] of await webhookDeliveries.waiting()) {
    const excess = queue.count - maxWaiting
    let dropped = 0
    while (dropped < excess) {
      const batch = Math.min(excess - dropped, DROP_BATCH)
      const droppedBefore = queue.dropped + dropped
      const droppedInBatch = await webhookDeliveries.drop(webhookId, batch, droppedBefore, clock.now())
      if (droppedInBatch === 0) break
      dropped += droppedInBatch
    }
    if (dropped > 0) log.warn({ webhook_id: webhookId, dropped }, 'events of a webhook were dropped')
    droppedCount += dropped
  }
  return droppedCount
}

/** The backlog of all endpoints together, for the metrics. `failed` counts the events that were given up. */
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
