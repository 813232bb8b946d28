import type { MetricsSnapshot } from '../metrics/metrics.ts'

/** What a process tells its supervisor. */
export type ToSupervisor =
  | { type: 'ready'; url: string; isAdministered: boolean }
  /** The answer to `read-metrics`, and the last values before a process ends. */
  | { type: 'metrics'; metrics: MetricsSnapshot }
  /** Asks for the metrics of all processes. */
  | { type: 'render-metrics'; id: number }

/** What the supervisor tells a process. */
export type ToProcess =
  /** The first message. `number`: from 1 on; a process that replaces another has its number. */
  | { type: 'start'; number: number }
  | { type: 'read-metrics' }
  | { type: 'rendered-metrics'; id: number; page: MetricsPage | null }

/** Metrics in the exposition format of Prometheus. */
export interface MetricsPage {
  type: string
  body: string
}
