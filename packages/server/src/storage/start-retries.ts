import { setTimeout as wait } from 'node:timers/promises'
import { isDiskFull, KeywayError } from '../errors.ts'
import type { Log } from '../log.ts'

const MAX_WAIT_MS = 60_000
const RETRY_MS = 200

/** unique_violation, duplicate_table and duplicate_object occur if another node creates the same table concurrently. */
const CONCURRENT_CREATION_CODES = new Set(['23505', '42P07', '42710'])

/**
 * Repeats a step of a start for a minute while another process holds the lock or the database is starting, and logs the
 * first reason. After that, or if the disk is full, rejects with the step's error.
 */
export async function retryAtStart<Outcome>(log: Log, step: () => Promise<Outcome>): Promise<Outcome> {
  const startedAt = performance.now()
  for (let isLogged = false; ; await wait(RETRY_MS)) {
    try {
      return await step()
    } catch (error) {
      // A full disk is not retryable: the operator must see the error at once.
      const isUnavailable = error instanceof KeywayError && !isDiskFull(error)
      const code = (error as { code?: string }).code
      const isRetryable = isUnavailable || (code !== undefined && CONCURRENT_CREATION_CODES.has(code))
      if (!isRetryable || performance.now() - startedAt >= MAX_WAIT_MS) throw error
      if (isUnavailable && !isLogged) {
        log.warn(
          { reason: String(error.extras.cause) },
          'The database is not available yet; trying again for a minute.',
        )
        isLogged = true
      }
    }
  }
}
