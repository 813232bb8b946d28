import type { Clock, Instant } from '../../src/clock.ts'

/** A clock that stands still until a test moves it. */
export interface TestClock extends Clock {
  /** Milliseconds. */
  advance(ms: number): void
  set(instant: Instant): void
}

const START: Instant = Date.UTC(2026, 10, 20, 12)

export function createTestClock(start: Instant = START): TestClock {
  let instant = start
  return {
    now: () => instant,
    advance(ms) {
      instant += ms
    },
    set(to) {
      instant = to
    },
  }
}
