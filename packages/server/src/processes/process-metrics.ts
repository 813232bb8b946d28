import { addFinalCounts, renderCombined } from '../metrics/combined.ts'
import type { MetricsSnapshot } from '../metrics/metrics.ts'
import type { MetricsPage } from './messages.ts'

/** How long processes may take to report their metrics; one that takes longer is rendered with its last values. */
const REPORT_TIMEOUT_MS = 2000

/** A process that reports its metrics, which are combined with those of the others. */
export interface MetricsReporter {
  readonly number: number
  /** Requests a report of the metrics, which `ProcessMetricsPage.reported` receives. */
  readMetrics(): void
}

/** Combines the metrics of the processes of a node. */
export interface ProcessMetricsPage {
  add(process: MetricsReporter): void
  /** Stores the metrics that a process has reported. */
  reported(process: MetricsReporter, metrics: MetricsSnapshot): void
  /** Removes a process that has ended; its counts remain in the totals. */
  remove(process: MetricsReporter): void
  /** Concurrent calls share one rendering. */
  render(): Promise<MetricsPage>
}

interface ReportState {
  /** The metrics that the process reported last; null before its first report. */
  lastReport: MetricsSnapshot | null
  /** Called at the next report, or when the process ends. */
  onReport: (() => void)[]
}

export function createProcessMetricsPage(): ProcessMetricsPage {
  const runningProcesses = new Map<MetricsReporter, ReportState>()
  /** The summed counts of all processes that have ended. */
  let endedTotalsPromise: Promise<MetricsSnapshot> = Promise.resolve([])
  let endedProcessCount = 0
  let rendering: Promise<MetricsPage> | null = null

  return {
    add: process => void runningProcesses.set(process, { lastReport: null, onReport: [] }),
    reported(process, metrics) {
      const state = runningProcesses.get(process)
      if (!state) return
      state.lastReport = metrics
      for (const listener of state.onReport.splice(0)) listener()
    },
    remove(process) {
      const state = runningProcesses.get(process)
      if (!state) return
      runningProcesses.delete(process)
      endedProcessCount++
      const { lastReport, onReport } = state
      for (const listener of onReport) listener()
      if (lastReport)
        endedTotalsPromise = endedTotalsPromise.then(totals => addFinalCounts(totals, lastReport))
    },
    render() {
      rendering ??= renderOnce().finally(() => {
        rendering = null
      })
      return rendering
    },
  }

  async function renderOnce(): Promise<MetricsPage> {
    await Promise.race([Promise.all([...runningProcesses].map(requestReport)), untilReportTimeout()])
    const totals = await latestEndedTotals()
    const processes = [...runningProcesses].flatMap(([{ number }, { lastReport }]) =>
      lastReport ? [{ number, metrics: lastReport }] : [],
    )
    return renderCombined(processes, [...totals, ...nodeMetrics()])
  }

  /**
   * Awaits `endedTotalsPromise` again if a process has ended meanwhile, so that each process counts once, as running or
   * ended.
   */
  async function latestEndedTotals(): Promise<MetricsSnapshot> {
    for (;;) {
      const awaitedTotals = endedTotalsPromise
      const totals = await awaitedTotals
      if (awaitedTotals === endedTotalsPromise) return totals
    }
  }

  /** Resolves when the process has reported its metrics, or has ended. */
  function requestReport([process, { onReport }]: [MetricsReporter, ReportState]): Promise<void> {
    return new Promise(resolve => {
      onReport.push(resolve)
      process.readMetrics()
    })
  }

  /** The metrics of the node as a whole, which no process can report. */
  function nodeMetrics(): MetricsSnapshot {
    return [
      {
        name: 'keyway_processes',
        help: 'Processes of this node that run (KEYWAY_PROCESSES).',
        type: 'gauge',
        aggregator: 'sum',
        values: [{ value: runningProcesses.size, labels: {} }],
      },
      {
        name: 'keyway_processes_ended_total',
        help: 'Processes of this node that ended: that crashed or were replaced.',
        type: 'counter',
        aggregator: 'sum',
        values: [{ value: endedProcessCount, labels: {} }],
      },
    ]
  }
}

function untilReportTimeout(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, REPORT_TIMEOUT_MS).unref())
}
