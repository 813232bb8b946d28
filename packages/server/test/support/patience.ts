import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'

/** How long a test waits for something on a machine that has nothing else to do. */
const PATIENCE_MS = 10_000
const POLL_MS = 25

/** The factor by which everything takes longer here than on an idle machine: runnable processes for each core. */
export function slowness(): number {
  return Math.max(1, loadavg()[0]! / availableParallelism())
}

/** The timeout on this machine of what takes at most `ms` on an idle one. */
export function patienceMs(ms: number = PATIENCE_MS): number {
  return Math.round(ms * slowness())
}

/** The value, unless it does not come in time. @throws Error that names what did not come */
export async function inTime<Value>(what: string, value: Promise<Value>, ms?: number): Promise<Value> {
  const patience = patienceMs(ms)
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`not within ${patience} ms: ${what}`)), patience)
  try {
    return await Promise.race([value, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Polls until `look` returns something other than undefined, null or false, and returns it.
 *
 * @throws Error that names what did not come
 */
export async function until<Value>(
  what: string,
  look: () => Value | Promise<Value>,
  ms?: number,
): Promise<NonNullable<Value>> {
  const patience = patienceMs(ms)
  for (const startedAt = performance.now(); ; ) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    if (performance.now() - startedAt > patience) throw new Error(`not within ${patience} ms: ${what}`)
    await wait(POLL_MS)
  }
}
