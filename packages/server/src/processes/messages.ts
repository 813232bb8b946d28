import type { MetricsSnapshot } from '../metrics/metrics.ts'

export type ToSupervisor =
  | { type: 'ready'; url: string; hasAdministrator: boolean }
  /** Sent in answer to `read-metrics`, and once more before the process ends. */
  | { type: 'metrics'; metrics: MetricsSnapshot }
  /** Asks for the metrics of all processes. */
  | { type: 'render-metrics'; id: number }

export type ToProcess =
  /** The first message. `number` counts from 1; a replacement gets the number of the process that it replaces. */
  | { type: 'start'; number: number }
  | { type: 'read-metrics' }
  | { type: 'rendered-metrics'; id: number; page: MetricsPage | null }

/** Metrics in the exposition format of Prometheus. */
export interface MetricsPage {
  type: string
  body: string
}
