import { addEnded, renderCombined } from '../metrics/combined.ts'
import type { MetricsSnapshot } from '../metrics/metrics.ts'
import type { MetricsPage } from './messages.ts'

/** How long the answer of a process is awaited; without it the process is rendered with its last values. */
const ANSWER_MS = 2000

/** A process whose metrics are combined with those of the others. */
export interface MetricsReporter {
  readonly number: number
  /** Requests the metrics of the process. */
  readMetrics(): void
}

/** Combines the metrics of the processes of a node. */
export interface ProcessMetricsPage {
  add(process: MetricsReporter): void
  /** Called when the process has reported its metrics. */
  reported(process: MetricsReporter, metrics: MetricsSnapshot): void
  /** Called when the process has ended: its counts remain in the sums. */
  remove(process: MetricsReporter): void
  /** Concurrent calls share one rendering. */
  render(): Promise<MetricsPage>
}

interface Reports {
  last: MetricsSnapshot | null
  onReport: (() => void)[]
}

export function createProcessMetricsPage(): ProcessMetricsPage {
  const running = new Map<MetricsReporter, Reports>()
  let ended: Promise<MetricsSnapshot> = Promise.resolve([])
  let endings = 0
  let rendering: Promise<MetricsPage> | null = null

  return {
    add: process => void running.set(process, { last: null, onReport: [] }),
    reported(process, metrics) {
      const reports = running.get(process)
      if (!reports) return
      reports.last = metrics
      for (const done of reports.onReport.splice(0)) done()
    },
    remove(process) {
      const reports = running.get(process)
      if (!reports) return
      running.delete(process)
      endings++
      const { last, onReport } = reports
      for (const done of onReport) done()
      if (last) ended = ended.then(sums => addEnded(sums, last))
    },
    render() {
      rendering ??= renderOnce().finally(() => {
        rendering = null
      })
      return rendering
    },
  }

  async function renderOnce(): Promise<MetricsPage> {
    await Promise.race([Promise.all([...running].map(freshReport)), answerTime()])
    const sums = await sumsOfEnded()
    const processes = [...running].flatMap(([{ number }, { last }]) =>
      last ? [{ number, metrics: last }] : [],
    )
    return renderCombined(processes, [...sums, ...ofNode()])
  }

  /** Awaits again if a process has ended meanwhile, so that each process counts either as running or as ended. */
  async function sumsOfEnded(): Promise<MetricsSnapshot> {
    for (;;) {
      const awaited = ended
      const sums = await awaited
      if (awaited === ended) return sums
    }
  }

  function freshReport([process, { onReport }]: [MetricsReporter, Reports]): Promise<void> {
    return new Promise(resolve => {
      onReport.push(resolve)
      process.readMetrics()
    })
  }

  function ofNode(): MetricsSnapshot {
    return [
      {
        name: 'keyway_processes',
        help: 'Processes of this node that run (KEYWAY_PROCESSES).',
        type: 'gauge',
        aggregator: 'sum',
        values: [{ value: running.size, labels: {} }],
      },
      {
        name: 'keyway_processes_ended_total',
        help: 'Processes of this node that ended: that crashed or were replaced.',
        type: 'counter',
        aggregator: 'sum',
        values: [{ value: endings, labels: {} }],
      },
    ]
  }
}

function answerTime(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ANSWER_MS).unref())
}
