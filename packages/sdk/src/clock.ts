/**
 * The SDK's clock: monotonic, so that a wrong date, a stepped clock or a wrong time zone affects no lifetime. Tests
 * pass a clock of their own; the default is `systemClock`.
 */
export interface SdkClock {
  /** Monotonic milliseconds. */
  now(): number
  /** Calls back once after `ms` milliseconds. Returns a function that cancels it. */
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
