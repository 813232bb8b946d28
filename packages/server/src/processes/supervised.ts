import cluster from 'node:cluster'
import { once } from 'node:events'
import type { Metrics } from '../metrics/metrics.ts'
import type { MetricsPage, ToProcess, ToSupervisor } from './messages.ts'

/** The supervisor, as one of its processes knows it. */
export interface Supervision {
  /** The number of this process, from 1 on. */
  readonly number: number
  /** Resolves when the supervisor is gone, since nobody would stop this process any more. */
  readonly lost: Promise<void>
  /** Reports that this process listens. */
  ready(url: string, isAdministered: boolean): void
  /** Reports the metrics of this process once more, before it drains. */
  leave(): Promise<void>
  /**
   * Lets the supervisor read the metrics of this process.
   *
   * @returns renders those of all processes; rejects if the supervisor cannot
   */
  shareMetrics(own: Pick<Metrics, 'snapshot'>): () => Promise<MetricsPage>
}

/** Connects to the supervisor, in a process that `supervise` started. */
export async function joinSupervisor(): Promise<Supervision> {
  const waiting = new Map<number, PromiseWithResolvers<MetricsPage>>()
  const lost = Promise.withResolvers<void>()
  let readOwn: Metrics['snapshot'] | undefined
  let asked = 0
  cluster.worker!.once('disconnect', () => {
    // Without this, Node would end the process at once instead of letting it drain.
    cluster.worker!.exitedAfterDisconnect = true
    lost.resolve()
  })
  // SIGHUP is meant for the supervisor, but a service manager may signal the whole process group.
  process.on('SIGHUP', () => {})
  const [first] = (await once(process, 'message')) as [ToProcess & { type: 'start' }]
  process.on('message', (message: ToProcess) => {
    if (message.type === 'read-metrics') void sendMetrics()
    else if (message.type === 'rendered-metrics') settle(message.id, message.page)
  })

  return {
    number: first.number,
    lost: lost.promise,
    ready: (url, isAdministered) => send({ type: 'ready', url, isAdministered }),
    leave: sendMetrics,
    shareMetrics(own) {
      readOwn = own.snapshot
      return () => {
        const id = ++asked
        const answer = Promise.withResolvers<MetricsPage>()
        waiting.set(id, answer)
        send({ type: 'render-metrics', id })
        return answer.promise
      }
    },
  }

  async function sendMetrics(): Promise<void> {
    if (readOwn) send({ type: 'metrics', metrics: await readOwn() })
  }

  function settle(id: number, page: MetricsPage | null): void {
    const answer = waiting.get(id)
    waiting.delete(id)
    if (page) answer?.resolve(page)
    else answer?.reject(new Error('the metrics of the processes could not be combined'))
  }
}

/** Does nothing if the supervisor is gone. */
function send(message: ToSupervisor): void {
  if (process.connected) process.send!(message, undefined, undefined, () => {})
}
