import { AggregatorRegistry } from 'prom-client'
import type { MetricsSnapshot } from './metrics.ts'

export interface ProcessMetrics {
  /** The value of the label `process`. */
  number: number
  metrics: MetricsSnapshot
}

/** Metrics of Node itself (memory, processor time, event loop), which are shown for each process, not summed. */
const NODE_METRIC = /^(process|nodejs)_/

/**
 * Renders the metrics of several processes as one page: those of the service are combined (most are summed), those of
 * Node are listed for each process, with its number as a label.
 *
 * @param endedTotals the counts of processes that have ended, from `addFinalCounts`
 */
export async function renderCombined(
  processes: readonly ProcessMetrics[],
  endedTotals: MetricsSnapshot,
): Promise<{ type: string; body: string }> {
  const registry = AggregatorRegistry.aggregate([...processes.map(withProcessLabel), endedTotals])
  return { type: registry.contentType, body: await registry.metrics() }
}

/**
 * Adds the final counts of a process to those of the processes that ended before it: if a total decreased, Prometheus
 * would interpret that as a counter reset, and count all events again.
 */
export async function addFinalCounts(
  endedTotals: MetricsSnapshot,
  finalMetrics: MetricsSnapshot,
): Promise<MetricsSnapshot> {
  const counts = finalMetrics.filter(
    ({ name, type }) => !NODE_METRIC.test(name) && (type === 'counter' || type === 'histogram'),
  )
  const sums = await AggregatorRegistry.aggregate([endedTotals, counts]).getMetricsAsJSON()
  return sums as unknown as MetricsSnapshot
}

function withProcessLabel({ number, metrics }: ProcessMetrics): MetricsSnapshot {
  return metrics.map(metric =>
    NODE_METRIC.test(metric.name)
      ? {
          ...metric,
          aggregator: 'sum',
          values: metric.values.map(value => ({
            ...value,
            labels: { ...value.labels, process: String(number) },
          })),
        }
      : metric,
  )
}
