import { unavailable } from '../errors.ts'
import type { Event } from '../events.ts'
import type { EngineTransaction } from './engine.ts'
import { toSqliteValues } from './sqlite-values.ts'
import { BatchAborted, type Writer } from './sqlite-writer-client.ts'

const MAX_BATCH_TRANSACTIONS = 256
/** Age from which a batch is committed even if transactions wait, so that these cannot delay it indefinitely. */
const MAX_BATCH_MS = 20

export interface GroupCommit {
  readonly commitCount: number
  /** Number of transactions that have not started. */
  readonly waiting: number
  transaction<Outcome>(work: (tx: EngineTransaction) => Promise<Outcome>): Promise<Outcome>
  /** Completes queued transactions and refuses new ones. */
  finish(): Promise<void>
}

/** A transaction whose work is done; its caller gets the result after the COMMIT that its batch shares. */
interface FinishedTransaction {
  resolve(): void
  reject(cause: unknown): void
  events: Event[]
}

/**
 * Group commit: transactions run sequentially, each as a savepoint of an outer transaction. They share the outer
 * COMMIT, the only step that waits for the disk. Results and events are delivered after it. A transaction that throws
 * rolls back its own savepoint only. After an error such as a full disk the whole batch is rolled back, and each of its
 * transactions rejects with KeywayError `unavailable`.
 */
export function createGroupCommit(writer: Writer, emit: (event: Event) => void): GroupCommit {
  const queue: (() => Promise<void>)[] = []
  let runningDrain: Promise<void> | null = null
  let isClosed = false
  let commitCount = 0
  let batchNumber = 1
  let batchStartedAt = 0
  /** Whether a transaction of the current batch executed a statement: otherwise there is nothing to commit. */
  let batchHasStatements = false
  let finishedTransactions: FinishedTransaction[] = []

  return {
    get commitCount() {
      return commitCount
    },
    get waiting() {
      return queue.length
    },
    transaction(work) {
      if (isClosed) return Promise.reject(unavailable(new Error('the database is closed')))
      return new Promise((resolve, reject) => {
        queue.push(() => runTransaction(work, resolve, reject))
        runningDrain ??= drain()
      })
    },
    async finish() {
      isClosed = true
      while (runningDrain) await runningDrain
    },
  }

  async function drain(): Promise<void> {
    for (let next = queue.shift(); next; next = queue.shift()) {
      await next()
      const isFullOrOld =
        finishedTransactions.length >= MAX_BATCH_TRANSACTIONS ||
        performance.now() - batchStartedAt >= MAX_BATCH_MS
      if (queue.length === 0 || isFullOrOld) await commitBatch()
    }
    runningDrain = null
  }

  async function runTransaction<Outcome>(
    work: (tx: EngineTransaction) => Promise<Outcome>,
    resolve: (outcome: Outcome) => void,
    reject: (error: unknown) => void,
  ): Promise<void> {
    if (finishedTransactions.length === 0) batchStartedAt = performance.now()
    const batch = batchNumber
    const events: Event[] = []
    let hasSavepoint = false
    let isOpen = true
    const tx: EngineTransaction = {
      async execute(sql, parameters) {
        if (!isOpen) throw new Error('this transaction has ended')
        const needsSavepoint = !hasSavepoint
        hasSavepoint = true
        batchHasStatements = true
        return writer.request({
          kind: 'run',
          batch,
          savepoint: needsSavepoint,
          sql,
          parameters: toSqliteValues(parameters),
        })
      },
      publish: event => events.push(event),
    }
    try {
      const outcome = await work(tx)
      isOpen = false
      if (hasSavepoint) writer.post({ kind: 'release', batch })
      finishedTransactions.push({ resolve: () => resolve(outcome), reject, events })
    } catch (error) {
      isOpen = false
      if (error instanceof BatchAborted) {
        rejectBatch(error)
        return reject(unavailable(error))
      }
      if (hasSavepoint) writer.post({ kind: 'rollback', batch })
      reject(error)
    }
  }

  /** Rejects all transactions of the batch, which the writer has rolled back. */
  function rejectBatch(cause: unknown): void {
    const transactions = finishedTransactions
    startBatch()
    for (const transaction of transactions) transaction.reject(unavailable(cause))
  }

  function startBatch(): void {
    finishedTransactions = []
    batchHasStatements = false
    batchNumber++
  }

  async function commitBatch(): Promise<void> {
    const batch = batchNumber
    const transactions = finishedTransactions
    const needsCommit = batchHasStatements
    startBatch()
    try {
      if (needsCommit) {
        await writer.request({ kind: 'commit', batch })
        commitCount++
      }
    } catch (error) {
      for (const { reject } of transactions) reject(unavailable(error))
      return
    }
    for (const { resolve } of transactions) resolve()
    for (const { events } of transactions) for (const event of events) emit(event)
  }
}
