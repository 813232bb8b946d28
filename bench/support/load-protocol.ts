/** What the bench tells the load generator, and what it hears back. */
export interface LoadOrder {
  port: number
  /** Keep-alive connections, each with at most one request under way. */
  connections: number
  method: string
  path: string
  /** One is sent after the other, from the start again at the end. */
  bodies: string[]
  headers?: Record<string, string>
  /** Before anything is counted. */
  warmUpMs: number
  durationMs: number
  /**
   * Requests a second, started by the clock whatever the answers do (open loop); null: the next one follows the
   * answer to the one before (closed loop).
   */
  rate: number | null
}

export interface LoadResult {
  /** Answers with a 2xx status inside the measured time. */
  answered: number
  failed: number
  /** The first failing answer. */
  failure?: string
  seconds: number
  /** Milliseconds; in an open loop from when the request should have started. */
  p50: number
  p99: number
  p999: number
}
