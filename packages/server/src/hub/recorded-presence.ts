import type { Clock } from '../clock.ts'
import type { Storage } from '../store.ts'
import type { HubPresence } from './presence-store.ts'

/** The hub's port to the rows of connections. The transaction that changes them also queues their webhook events. */
export function recordedPresence({ storage, clock }: { storage: Storage; clock: Clock }): HubPresence {
  return {
    ...storage.store.presence,
    async record(nodeId, added, removedIds) {
      if (added.length + removedIds.length === 0) return
      await storage.transaction(tx => tx.presence.record(nodeId, added, removedIds, clock.now()))
    },
    async deregister(nodeId) {
      await storage.transaction(tx => tx.presence.deregister(nodeId, clock.now()))
    },
  }
}
