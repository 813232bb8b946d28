import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Storage, Transaction } from '../store.ts'

/** Stores batches of counts in their order, each at most once. */
export interface Batches<Batch> {
  /** Adds a batch, whose content must not change afterwards, since it may have been stored already. */
  push(batch: Batch): void
  /**
   * Stores the added batches, and calls `stored` after each. Rejects if one could not be stored: it is kept, and stored
   * by a later call.
   */
  store(stored?: (batch: Batch) => void): Promise<void>
}

/**
 * The answer to a batch's COMMIT may be lost, so every batch has a number, which the transaction that stores it records:
 * a batch that is sent again is not added again.
 */
export function createBatches<Batch>({
  storage,
  clock,
  add,
}: {
  storage: Storage
  clock: Clock
  /** Adds the counts, in the transaction that records the batch. */
  add(tx: Transaction, batch: Batch): Promise<void>
}): Batches<Batch> {
  const writer = newId(clock.now())
  let sequence = 0
  const waiting: { sequence: number; batch: Batch }[] = []

  return {
    push: batch => void waiting.push({ sequence: ++sequence, batch }),
    async store(stored = () => {}) {
      for (let next = waiting[0]; next; next = waiting[0]) {
        await storeOne(next)
        waiting.shift()
        stored(next.batch)
      }
    },
  }

  async function storeOne({ sequence, batch }: { sequence: number; batch: Batch }): Promise<void> {
    await storage.transaction(
      async tx => {
        if (await tx.usage.recordFlush(writer, sequence, clock.now())) await add(tx, batch)
        return true
      },
      async afterwards => (await afterwards.usage.lastFlush(writer)) >= sequence || undefined,
    )
  }
}
