import cluster from 'node:cluster'
import { once } from 'node:events'
import type { Metrics } from '../metrics/metrics.ts'
import type { MetricsPage, ToProcess, ToSupervisor } from './messages.ts'

/** The connection of a process to its supervisor. */
export interface Supervision {
  /** The number of this process, from 1 on. */
  readonly number: number
  /** Resolves when the supervisor has ended. The process must then stop by itself, since nothing else would stop it. */
  readonly supervisorEnded: Promise<void>
  ready(url: string, hasAdministrator: boolean): void
  /** Reports the final metrics of this process, before it drains. */
  reportFinalMetrics(): Promise<void>
  /**
   * Lets the supervisor read the metrics of this process.
   *
   * @returns a function that renders the metrics of all processes; rejects if the supervisor cannot render them
   */
  shareMetrics(metrics: Pick<Metrics, 'snapshot'>): () => Promise<MetricsPage>
}

/** Connects to the supervisor, in a process that `supervise` started. */
export async function joinSupervisor(): Promise<Supervision> {
  /** Pages that were requested from the supervisor, by the id of the request. */
  const pendingPages = new Map<number, PromiseWithResolvers<MetricsPage>>()
  const supervisorEnded = Promise.withResolvers<void>()
  let readMetrics: Metrics['snapshot'] | undefined
  let lastId = 0
  cluster.worker!.once('disconnect', () => {
    // Without this, Node would end the process at once instead of letting it drain.
    cluster.worker!.exitedAfterDisconnect = true
    supervisorEnded.resolve()
  })
  // SIGHUP is meant for the supervisor, but a service manager may signal the whole process group.
  process.on('SIGHUP', () => {})
  const [startMessage] = (await once(process, 'message')) as [ToProcess & { type: 'start' }]
  process.on('message', (message: ToProcess) => {
    if (message.type === 'read-metrics') void sendMetrics()
    else if (message.type === 'rendered-metrics') receivePage(message.id, message.page)
  })

  return {
    number: startMessage.number,
    supervisorEnded: supervisorEnded.promise,
    ready: (url, hasAdministrator) => send({ type: 'ready', url, hasAdministrator }),
    reportFinalMetrics: sendMetrics,
    shareMetrics(metrics) {
      readMetrics = metrics.snapshot
      return () => {
        const id = ++lastId
        const page = Promise.withResolvers<MetricsPage>()
        pendingPages.set(id, page)
        send({ type: 'render-metrics', id })
        return page.promise
      }
    },
  }

  async function sendMetrics(): Promise<void> {
    if (readMetrics) send({ type: 'metrics', metrics: await readMetrics() })
  }

  function receivePage(id: number, page: MetricsPage | null): void {
    const pending = pendingPages.get(id)
    pendingPages.delete(id)
    if (page) pending?.resolve(page)
    else pending?.reject(new Error('the metrics of the processes could not be combined'))
  }
}

/** Sends a message to the supervisor, or does nothing if the supervisor has ended. */
function send(message: ToSupervisor): void {
  if (process.connected) process.send!(message, undefined, undefined, () => {})
}
