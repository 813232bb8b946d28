import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Storage, Transaction } from '../store.ts'

/** Stores batches of counts in their order, each at most once. */
export interface Batches<Batch> {
  /** Adds a batch. Its content must not change afterwards, even after a failed attempt, which may have stored it. */
  push(batch: Batch): void
  /**
   * Stores the added batches, and calls `onStored` after each. Rejects if a batch could not be stored; a later call
   * stores it.
   */
  store(onStored?: (batch: Batch) => void): Promise<void>
}

/**
 * The answer to a batch's COMMIT may be lost. So every batch has a number, which is recorded by the transaction that
 * stores the batch: if the batch is sent again, its counts are not added again.
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
  /** Identifies this writer in the database, since every writer numbers its batches from 1. */
  const writerId = newId(clock.now())
  let sequence = 0
  const queue: { sequence: number; batch: Batch }[] = []

  return {
    push: batch => void queue.push({ sequence: ++sequence, batch }),
    async store(onStored = () => {}) {
      for (let next = queue[0]; next; next = queue[0]) {
        await storeBatch(next)
        queue.shift()
        onStored(next.batch)
      }
    },
  }

  async function storeBatch({ sequence, batch }: { sequence: number; batch: Batch }): Promise<void> {
    await storage.transaction(
      async tx => {
        if (await tx.usage.recordFlush(writerId, sequence, clock.now())) await add(tx, batch)
        return true
      },
      async store => (await store.usage.lastFlush(writerId)) >= sequence || undefined,
    )
  }
}
