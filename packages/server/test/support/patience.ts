import { type EventEmitter, once } from 'node:events'
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'

/** How long a test waits on an idle machine before it fails. */
const DEFAULT_TIMEOUT_MS = 10_000
const POLL_MS = 25

/** The factor by which everything takes longer here than on an idle machine: runnable processes for each core. */
export function slowness(): number {
  return Math.max(1, loadavg()[0]! / availableParallelism())
}

/** The timeout to use on this machine, as busy as it is now, for what takes at most `ms` on an idle one. */
export function patienceMs(ms: number = DEFAULT_TIMEOUT_MS): number {
  return Math.round(ms * slowness())
}

/** Settles like `value`, or rejects after `patienceMs(ms)`. @throws Error that contains `what`, after the timeout */
export async function inTime<Value>(what: string, value: Promise<Value>, ms?: number): Promise<Value> {
  const timeout = patienceMs(ms)
  const expiry = Promise.withResolvers<never>()
  const timer = setTimeout(() => expiry.reject(new Error(`not within ${timeout} ms: ${what}`)), timeout)
  try {
    return await Promise.race([value, expiry.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Like `once` of node:events, but rejects if the event does not come in time. */
export function onceInTime(emitter: EventEmitter, event: string): ReturnType<typeof once> {
  return inTime(`the event “${event}”`, once(emitter, event))
}

/**
 * Polls until `check` returns something other than undefined, null or false, and returns it.
 *
 * @throws Error that contains `what`, after `patienceMs(ms)`; or what `check` throws
 */
export async function until<Value>(
  what: string,
  check: () => Value | Promise<Value>,
  ms?: number,
): Promise<NonNullable<Value>> {
  const timeout = patienceMs(ms)
  for (const startedAt = performance.now(); ; ) {
    const result = await check()
    if (result !== undefined && result !== null && result !== false) return result
    if (performance.now() - startedAt > timeout) throw new Error(`not within ${timeout} ms: ${what}`)
    await wait(POLL_MS)
  }
}
