import { unavailable } from '../errors.ts'
import type { Event } from '../events.ts'
import type { EngineTransaction } from './engine.ts'
import { toSqliteValues } from './sqlite-values.ts'
import { BatchAborted, type Writer } from './sqlite-writer-client.ts'

const MAX_BATCH = 256
/** Maximum time until the commit of a batch, so that new transactions cannot delay it indefinitely. */
const MAX_BATCH_MS = 20

export interface GroupCommit {
  readonly commits: number
  /** Transactions that have not started. */
  readonly waiting: number
  transaction<Outcome>(work: (tx: EngineTransaction) => Promise<Outcome>): Promise<Outcome>
  /** Completes queued transactions and refuses new ones. */
  finish(): Promise<void>
}

/** A transaction that has run; its caller is answered after the outer commit. */
interface Finished {
  settle(): void
  fail(cause: unknown): void
  events: Event[]
}

/**
 * Group commit: transactions run sequentially, each as a savepoint of an outer transaction. They share the outer
 * COMMIT, the only step that waits for the disk. Results and events are delivered after it. A transaction that throws
 * rolls back its own savepoint only.
 */
export function createGroupCommit(writer: Writer, emit: (event: Event) => void): GroupCommit {
  const queue: (() => Promise<void>)[] = []
  let running: Promise<void> | null = null
  let closed = false
  let commits = 0
  let batch = 1
  let begun = 0
  let wrote = false
  let finished: Finished[] = []

  return {
    get commits() {
      return commits
    },
    get waiting() {
      return queue.length
    },
    transaction(work) {
      if (closed) return Promise.reject(unavailable(new Error('the database is closed')))
      return new Promise((resolve, reject) => {
        queue.push(() => runOne(work, resolve, reject))
        running ??= drain()
      })
    },
    async finish() {
      closed = true
      while (running) await running
    },
  }

  async function drain(): Promise<void> {
    for (let next = queue.shift(); next; next = queue.shift()) {
      await next()
      const full = finished.length >= MAX_BATCH || performance.now() - begun >= MAX_BATCH_MS
      if (queue.length === 0 || full) await commitBatch()
    }
    running = null
  }

  async function runOne<Outcome>(
    work: (tx: EngineTransaction) => Promise<Outcome>,
    resolve: (outcome: Outcome) => void,
    reject: (error: unknown) => void,
  ): Promise<void> {
    if (finished.length === 0) begun = performance.now()
    const mine = batch
    const events: Event[] = []
    let touched = false
    let open = true
    const tx: EngineTransaction = {
      async execute(sql, parameters) {
        if (!open) throw new Error('this transaction has ended')
        const savepoint = !touched
        touched = true
        wrote = true
        return writer.request({
          kind: 'run',
          batch: mine,
          savepoint,
          sql,
          parameters: toSqliteValues(parameters),
        })
      },
      publish: event => events.push(event),
    }
    try {
      const outcome = await work(tx)
      open = false
      if (touched) writer.post({ kind: 'release', batch: mine })
      finished.push({ settle: () => resolve(outcome), fail: reject, events })
    } catch (error) {
      open = false
      if (error instanceof BatchAborted) {
        abandonBatch(error)
        return reject(unavailable(error))
      }
      if (touched) writer.post({ kind: 'rollback', batch: mine })
      reject(error)
    }
  }

  /** The writer rolled back the whole batch. */
  function abandonBatch(cause: unknown): void {
    const lost = finished
    startBatch()
    for (const one of lost) one.fail(unavailable(cause))
  }

  function startBatch(): void {
    finished = []
    wrote = false
    batch++
  }

  async function commitBatch(): Promise<void> {
    const mine = batch
    const outgoing = finished
    const nothingWritten = !wrote
    startBatch()
    try {
      if (!nothingWritten) {
        await writer.request({ kind: 'commit', batch: mine })
        commits++
      }
    } catch (error) {
      for (const one of outgoing) one.fail(unavailable(error))
      return
    }
    for (const one of outgoing) one.settle()
    for (const one of outgoing) for (const event of one.events) emit(event)
  }
}
