import { percentile } from '../statistics.ts'

/** Number and latencies (in milliseconds) of one operation's successful runs, in one interval or in the whole soak. */
export interface Latencies {
  count: number
  p50: number
  p99: number
  p999: number
}

/** Latencies and errors of one interval, and the sizes at its end. */
export interface Interval {
  /** Minutes since the start. */
  minute: number
  operations: Record<string, Latencies>
  /** Sizes by name: bytes, seconds, and numbers of files, resources and connections. */
  sizes: Record<string, number>
}

export interface Recorder {
  /** Runs an operation and records its time, or the error that it throws. */
  measure(operation: string, work: () => Promise<unknown>): Promise<void>
  endInterval(minute: number, sizes: Record<string, number>): void
  recordFailure(operation: string, error: unknown): void
  readonly intervals: Interval[]
  readonly totals: ReadonlyMap<string, { count: number; errors: number; latencies: Latencies }>
  /** The texts of the first errors. */
  readonly errors: string[]
}

const MAX_ERRORS_LISTED = 20

export function createRecorder(): Recorder {
  let intervalTimes = new Map<string, number[]>()
  const allTimes = new Map<string, number[]>()
  const failures = new Map<string, number>()
  const errors: string[] = []
  const intervals: Interval[] = []

  return {
    intervals,
    errors,
    recordFailure,
    async measure(operation, work) {
      const startedAt = performance.now()
      try {
        await work()
      } catch (error) {
        recordFailure(operation, error)
        return
      }
      const milliseconds = performance.now() - startedAt
      for (const latencies of [intervalTimes, allTimes]) {
        const times = latencies.get(operation)
        if (times) times.push(milliseconds)
        else latencies.set(operation, [milliseconds])
      }
    },
    endInterval(minute, sizes) {
      const operations = Object.fromEntries([...intervalTimes].map(([name, times]) => [name, summary(times)]))
      intervalTimes = new Map()
      intervals.push({ minute, operations, sizes })
    },
    get totals() {
      const names = new Set([...allTimes.keys(), ...failures.keys()])
      return new Map(
        [...names].sort().map(name => {
          const times = allTimes.get(name) ?? []
          const errorCount = failures.get(name) ?? 0
          return [name, { count: times.length, errors: errorCount, latencies: summary(times) }]
        }),
      )
    },
  }

  function recordFailure(operation: string, error: unknown): void {
    failures.set(operation, (failures.get(operation) ?? 0) + 1)
    if (errors.length < MAX_ERRORS_LISTED) errors.push(`${new Date().toISOString()} ${operation}: ${error}`)
  }
}

function summary(times: number[]): Latencies {
  return {
    count: times.length,
    p50: percentile(times, 50),
    p99: percentile(times, 99),
    p999: percentile(times, 99.9),
  }
}
