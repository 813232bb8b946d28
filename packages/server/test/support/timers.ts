import type { Schedule } from '../../src/outbox/delivery.ts'
import type { TestClock } from './clock.ts'

/** Timers that follow the test clock: `advance` moves it and calls what became due, in order. */
export interface TestTimers {
  schedule: Schedule
  advance(ms: number): void
  /** Milliseconds from now until each pending timer is due, soonest first. */
  pending(): number[]
}

export function createTestTimers(clock: TestClock): TestTimers {
  const timers = new Set<{ due: number; callback: () => void }>()
  const timersByDueTime = () => [...timers].sort((a, b) => a.due - b.due)
  return {
    schedule(callback, delay) {
      const timer = { due: clock.now() + delay, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    advance(ms) {
      const endsAt = clock.now() + ms
      for (let next = timersByDueTime()[0]; next && next.due <= endsAt; next = timersByDueTime()[0]) {
        timers.delete(next)
        clock.set(Math.max(clock.now(), next.due))
        next.callback()
      }
      clock.set(endsAt)
    },
    pending: () => timersByDueTime().map(timer => timer.due - clock.now()),
  }
}
