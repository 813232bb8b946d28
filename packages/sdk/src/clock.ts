/**
 * Time as the SDK sees it: monotonic, so that a board that boots in 1970, a stepped clock or a wrong time zone
 * changes no lifetime. Tests hand in a clock of their own; everyone else uses `systemClock`.
 */
export interface SdkClock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number
  /** Calls back once after `ms` milliseconds; the answer cancels it. */
  after(ms: number, callback: () => void): () => void
  /** Uniform in [0, 1). */
  random(): number
}

/** Timers overflow above 2^31-1 ms and would then fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: SdkClock = {
  now: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(0, ms), LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
}

/** Waits `ms` milliseconds, or rejects with the signal's reason. */
export function pause(clock: SdkClock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
  })
}
