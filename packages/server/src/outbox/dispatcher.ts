import { MINUTE, SECOND } from '../clock.ts'
import { type DeliveryDeps, deliver } from './delivery.ts'
import { createWorker } from './leased-work.ts'
import type { Dispatcher } from './outbox.ts'

/** Several at once, so that one hanging server does not delay other recipients; few, so as not to flood a provider. */
export const CONCURRENT_DELIVERIES = 8
/** How long a node has for one delivery before another node may retry it. */
export const LEASE = 2 * MINUTE
/** How long deliveries in progress may take when the process stops. */
export const DRAIN_MAIL_MS = 3 * SECOND

/** Sends queued mail at least once, again under the same Message-ID (leased-work.ts). */
export function createDispatcher(deps: DeliveryDeps): Dispatcher {
  const { nodeId } = deps
  const { outbox } = deps.storage.store
  let sent = 0
  const worker = createWorker(
    {
      name: 'outbox',
      queued: 'mail.queued',
      concurrency: CONCURRENT_DELIVERIES,
      leaseTime: LEASE,
      lease: (now, leasedUntil, room) => outbox.lease(now, leasedUntil, room, nodeId),
      releaseUnknown: async heldIds => nodeId && outbox.releaseUnknown(nodeId, heldIds),
      nextDue: () => outbox.nextDue(),
      run: (message, abort) => deliver(deps, message, abort, () => sent++),
    },
    deps,
  )
  return {
    ...worker,
    async drain() {
      const before = sent
      await worker.drain()
      return sent - before
    },
  }
}
