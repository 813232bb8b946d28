import { MINUTE, SECOND } from '../clock.ts'
import { type DeliveryDeps, deliver } from './delivery.ts'
import { createWorker } from './leased-work.ts'
import type { Dispatcher } from './outbox.ts'

/**
 * Maximum number of concurrent deliveries: more than one, so that an unresponsive mail server does not delay other
 * recipients; few, so that a provider is not flooded.
 */
export const CONCURRENT_DELIVERIES = 8
/** How long a message is leased to a node for one delivery; then another node may try. */
export const LEASE = 2 * MINUTE
/** How long deliveries in progress may take when the process stops. */
export const DRAIN_MAIL_MS = 3 * SECOND

/** Sends queued mail at least once, as leased-work.ts explains; a repeated mail has the same Message-ID. */
export function createDispatcher(deps: DeliveryDeps): Dispatcher {
  const { nodeId } = deps
  const { outbox } = deps.storage.store
  let sentCount = 0
  const worker = createWorker(
    {
      name: 'outbox',
      queuedEvent: 'mail.queued',
      concurrency: CONCURRENT_DELIVERIES,
      leaseTime: LEASE,
      lease: (now, leasedUntil, capacity) => outbox.lease(now, leasedUntil, capacity, nodeId),
      releaseUnknown: async idsInProgress => nodeId && outbox.releaseUnknown(nodeId, idsInProgress),
      nextDue: () => outbox.nextDue(),
      run: (message, abort) => deliver(deps, message, abort, () => sentCount++),
    },
    deps,
  )
  return {
    ...worker,
    async drain() {
      const countBefore = sentCount
      await worker.drain()
      return sentCount - countBefore
    },
  }
}
