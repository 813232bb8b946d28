import { AggregatorRegistry } from 'prom-client'
import type { MetricsSnapshot } from './metrics.ts'

/** The metrics of one process. */
export interface ProcessMetrics {
  /** The value of the label `process`. */
  number: number
  metrics: MetricsSnapshot
}

/** Metrics of a Node process (memory, processor time, event loop); their sum would say nothing. */
const OF_ONE_PROCESS = /^(process|nodejs)_/

/**
 * Renders the metrics of several processes as one page: those of the service combined (most are summed), those of Node
 * with a label for each process.
 *
 * @param ended from `addEnded`
 */
export async function renderCombined(
  processes: readonly ProcessMetrics[],
  ended: MetricsSnapshot,
): Promise<{ type: string; body: string }> {
  const registry = AggregatorRegistry.aggregate([...processes.map(labelled), ended])
  return { type: registry.contentType, body: await registry.metrics() }
}

/**
 * Adds the final counts of a process to those of earlier ended ones: if a sum decreased, Prometheus would take it for a
 * reset and count all events again.
 */
export async function addEnded(ended: MetricsSnapshot, last: MetricsSnapshot): Promise<MetricsSnapshot> {
  const counted = last.filter(
    ({ name, type }) => !OF_ONE_PROCESS.test(name) && (type === 'counter' || type === 'histogram'),
  )
  const sums = await AggregatorRegistry.aggregate([ended, counted]).getMetricsAsJSON()
  return sums as unknown as MetricsSnapshot
}

function labelled({ number, metrics }: ProcessMetrics): MetricsSnapshot {
  return metrics.map(metric =>
    OF_ONE_PROCESS.test(metric.name)
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
