import type { Instant, SynchronizedClock } from '../../src/clock.ts'

/** A clock that only a test advances; the database's clock does not affect it. */
export interface TestClock extends SynchronizedClock {
  advance(ms: number): void
  set(instant: Instant): void
}

const START: Instant = Date.UTC(2026, 10, 20, 12)

export function createTestClock(start: Instant = START): TestClock {
  let now = start
  return {
    now: () => now,
    synchronize: async () => {},
    remainingOffset: 0,
    skew: 0,
    advance(ms) {
      now += ms
    },
    set(to) {
      now = to
    },
  }
}
