import type { SdkClock } from '../../src/clock.ts'

export interface ManualClock extends SdkClock {
  /** Advances time; due callbacks are called in order, each at its time. */
  advance(ms: number): void
  /** Jumps ahead, as after a suspend: overdue timers fire once. */
  wakeAfter(ms: number): void
  /** Milliseconds until the next timer; undefined if there is none. */
  next(): number | undefined
  randomness: number
}

export function createManualClock(): ManualClock {
  let time = 1_000
  const timers = new Map<symbol, { at: number; callback: () => void }>()
  const nextDueTimer = (until: number) =>
    [...timers].filter(([, { at }]) => at <= until).sort(([, a], [, b]) => a.at - b.at)[0]
  return {
    randomness: 0.5,
    now: () => time,
    random() {
      return this.randomness
    },
    after(ms, callback) {
      const id = Symbol()
      timers.set(id, { at: time + Math.max(0, ms), callback })
      return () => void timers.delete(id)
    },
    advance(ms) {
      const until = time + ms
      for (let timer = nextDueTimer(until); timer; timer = nextDueTimer(until)) {
        const [id, { at, callback }] = timer
        timers.delete(id)
        time = Math.max(time, at)
        callback()
      }
      time = until
    },
    wakeAfter(ms) {
      time += ms
      this.advance(0)
    },
    next: () => {
      const at = Math.min(...[...timers.values()].map(timer => timer.at))
      return Number.isFinite(at) ? at - time : undefined
    },
  }
}
