import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import { unavailable } from '../errors.ts'
import type { Event } from '../events.ts'
import type { Log } from '../log.ts'
import type { EngineTransaction } from './engine.ts'
import type { EventCarrier } from './event-carrier.ts'
import { type Connections, runStatement } from './postgres-connections.ts'
import {
  describeError,
  isAbortedTransaction,
  isConnectionError,
  isRetryable,
  toStorageError,
} from './postgres-errors.ts'

const MAX_RETRIES = 3
/** The n-th retry waits a random time up to n times this. */
const RETRY_JITTER_MS = 20
const READ_BACK_DELAYS_MS = [0, 100, 300, 800]

type Attempt<Outcome> = { events: Event[] } & (
  | { outcome: Outcome }
  | { retry: unknown }
  | { unknownCommit: unknown }
)

export function createTransactions(connections: Connections, carrier: EventCarrier, log: Log) {
  /** Publishes without retries: receivers also poll the database. Does nothing if the transaction sent a NOTIFY. */
  function publishAfterCommit(events: readonly Event[]): void {
    if (carrier.notification) return
    for (const event of events) {
      carrier
        .publish(event)
        .catch(error => log.warn({ error: describeError(error), type: event.type }, 'an event was lost'))
    }
  }

  return async <Outcome>(
    work: (tx: EngineTransaction) => Promise<Outcome>,
    readBack?: () => Promise<Outcome | undefined>,
  ): Promise<Outcome> => {
    for (let retries = 0; ; retries++) {
      const attempt = await attemptOnce(connections, carrier, work)
      if ('outcome' in attempt) {
        publishAfterCommit(attempt.events)
        return attempt.outcome
      }
      if ('unknownCommit' in attempt) {
        log.warn({ error: describeError(attempt.unknownCommit) }, 'the answer to a COMMIT was lost')
        const outcome = await resolveUnknownCommit(readBack, attempt.unknownCommit)
        publishAfterCommit(attempt.events)
        return outcome
      }
      if (retries === MAX_RETRIES) throw toStorageError(attempt.retry)
      await wait(Math.random() * RETRY_JITTER_MS * (retries + 1))
    }
  }
}

async function attemptOnce<Outcome>(
  connections: Connections,
  carrier: EventCarrier,
  work: (tx: EngineTransaction) => Promise<Outcome>,
): Promise<Attempt<Outcome>> {
  const { client, release } = await connections.acquire('write')
  const events: Event[] = []
  let isOpen = true
  let isCommitting = false
  /** The error of the first statement that failed; later ones only say that the transaction is aborted. */
  let firstError: unknown
  try {
    // BEGIN is not awaited, to save a round trip: whatever makes it fail (an aborted transaction that is still open on
    // the connection, a shutdown, a broken connection) makes the next statement fail too.
    const pendingBegin = client.query('begin isolation level read committed')
    pendingBegin.catch(() => {})
    const outcome = await work({
      async execute(sql, parameters) {
        // After a failure `work` may still be running; its statements must not be executed outside of the transaction.
        if (!isOpen) throw new Error('this transaction has ended')
        try {
          return await runStatement(client, sql, parameters)
        } catch (error) {
          firstError ??= error
          throw error
        }
      },
      publish: event => events.push(event),
    })
    isOpen = false
    await pendingBegin
    isCommitting = true
    const commitResult = await commit(client, carrier, events)
    // An aborted transaction answers COMMIT with ROLLBACK, without an error.
    if (commitResult.command !== 'COMMIT') throw new Error('the transaction had failed before its commit')
    release()
    return { outcome, events }
  } catch (thrown) {
    isOpen = false
    // If `work` runs statements concurrently, it may throw the error of a later one, which only says that the
    // transaction is aborted. The cause is the first error.
    const error = firstError !== undefined && isAbortedTransaction(thrown) ? firstError : thrown
    const isBroken = !(await rollBack(client, error))
    release(isBroken)
    if (isRetryable(error)) return { retry: error, events }
    if (isCommitting && isConnectionError(error)) return { unknownCommit: error, events }
    throw toStorageError(error)
  }
}

/** Sends NOTIFY and COMMIT in one write; if NOTIFY fails, COMMIT is answered with ROLLBACK. */
async function commit(
  client: pg.PoolClient,
  carrier: EventCarrier,
  events: Event[],
): Promise<pg.QueryResult> {
  const notification = events.length > 0 ? carrier.notification?.(events) : undefined
  const notifying = notification && runStatement(client, notification.sql, notification.parameters)
  const [commitResult] = await Promise.all([client.query('commit'), notifying])
  return commitResult
}

/** Returns false if the connection is broken. */
async function rollBack(client: pg.PoolClient, cause: unknown): Promise<boolean> {
  if (isConnectionError(cause)) return false
  try {
    await client.query('rollback')
    return true
  } catch {
    return false
  }
}

/**
 * Finds out on other connections whether the transaction was committed. Never runs it again: it could be applied twice.
 * Throws KeywayError `unavailable` unless `readBack` finds the outcome.
 */
async function resolveUnknownCommit<Outcome>(
  readBack: (() => Promise<Outcome | undefined>) | undefined,
  cause: unknown,
): Promise<Outcome> {
  if (!readBack) throw unavailable(cause)
  for (const delay of READ_BACK_DELAYS_MS) {
    await wait(delay)
    try {
      const outcome = await readBack()
      if (outcome !== undefined) return outcome
    } catch {
      // Still unreachable; retry after the next delay.
    }
  }
  throw unavailable(cause)
}
