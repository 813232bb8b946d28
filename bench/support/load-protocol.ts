export interface LoadJob {
  port: number
  /** Keep-alive connections, each with at most one pending request. */
  connections: number
  method: string
  path: string
  /** Request bodies, sent in turn. */
  bodies: string[]
  headers?: Record<string, string>
  warmUpMs: number
  durationMs: number
  /**
   * Requests a second, independent of the answers (open loop); null: each request follows the previous answer (closed
   * loop).
   */
  rate: number | null
}

export interface LoadResult {
  /** Answers with a 2xx status within the measured time. */
  answered: number
  failed: number
  /** The text of the first answer with another status. */
  failure?: string
  seconds: number
  /** Milliseconds; in an open loop from when the request should have started. */
  p50: number
  p99: number
  p999: number
}
