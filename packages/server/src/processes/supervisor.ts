import cluster from 'node:cluster'
import { once } from 'node:events'
import type { Log } from '../log.ts'
import type { MetricsPage, ToProcess, ToSupervisor } from './messages.ts'
import { createProcessMetricsPage, type ProcessMetricsPage } from './process-metrics.ts'

/** How long a process may take to stop before it is killed. Processes stop within 9 s (cli/serve.ts). */
const STOP_MS = 9_500
/** A process that ran for at least this long is replaced at once when it ends. */
const STABLE_MS = 10_000
/** The delay before a process that ended sooner is replaced; doubled each time, up to MAX_DELAY_MS. */
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 30_000

export interface ReadyReport {
  url: string
  hasAdministrator: boolean
}

export interface SupervisorOptions {
  /** At least 2. */
  processes: number
  log: Log
  /** Resolves when the node is to stop. */
  stop: Promise<void>
  /** Called once, when all processes listen. */
  onReady(ready: ReadyReport): void
}

interface Child {
  number: number
  startedAt: number
  /** Resolves when the process listens; with null if it ended before that. */
  readonly started: Promise<ReadyReport | null>
  /** Resolves when the process has ended, with its exit status or the name of the signal that ended it. */
  readonly ended: Promise<number | string>
  /** Lets the process drain, kills it if that takes longer than STOP_MS, and resolves when it has ended. */
  stop(): Promise<void>
}

/** Replaces one process whenever it ends. */
interface Keeper {
  /** Starts a replacement, and then stops the current process. Returns false if the replacement did not start. */
  replace(): Promise<boolean>
}

/**
 * Runs this command as several processes that accept connections from one listening socket, until `stop` resolves. In
 * the cluster each process is a node of its own. A process that ends by itself is replaced. SIGHUP (except on a
 * terminal) replaces all processes, one after the other, each once its successor listens.
 *
 * @returns the exit status: 0 after `stop`; if one of the first processes could not start, its status, or 1 if a signal
 *   ended it
 */
export async function supervise({ processes, log, stop, onReady }: SupervisorOptions): Promise<number> {
  // The processes accept connections themselves: passing each on from here would cost 45 µs, and make this process a
  // bottleneck.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  const metrics = createProcessMetricsPage()
  const runningChildren = new Set<Child>()
  let isStopping = false
  const pendingStop = stop.then(() => {
    isStopping = true
  })

  // The first process starts alone: it migrates the database, and mistakes in the settings are reported only once.
  const firstChild = launch(1)
  const otherChildren = (await firstChild.started)
    ? Array.from({ length: processes - 1 }, (_, at) => launch(at + 2))
    : []
  const children = [firstChild, ...otherChildren]
  const reports = await Promise.all(children.map(child => child.started))
  const failedChild = children[reports.indexOf(null)]
  if (failedChild && !isStopping) {
    const status = await failedChild.ended
    await stopAll()
    return typeof status === 'number' && status > 0 ? status : 1
  }
  if (!isStopping) {
    onReady(reports[0]!)
    replaceOnHangup(children.map(createKeeper))
  }
  await pendingStop
  await stopAll()
  return 0

  function launch(number: number): Child {
    const child = startChild(number, metrics)
    runningChildren.add(child)
    void child.ended.then(() => runningChildren.delete(child))
    return child
  }

  function createKeeper(initial: Child): Keeper {
    let currentChild = initial
    let delay = FIRST_DELAY_MS
    replaceWhenEnded()
    return {
      async replace() {
        const successor = launch(currentChild.number)
        if (!(await successor.started)) return false
        const formerChild = currentChild
        currentChild = successor
        replaceWhenEnded()
        await formerChild.stop()
        return true
      },
    }

    function replaceWhenEnded(): void {
      const child = currentChild
      void child.ended.then(async status => {
        if (child !== currentChild || isStopping) return
        log.error({ process: child.number, status }, 'a process ended and is replaced')
        if (performance.now() - child.startedAt >= STABLE_MS) {
          delay = FIRST_DELAY_MS
        } else {
          await Promise.race([pendingStop, pause(delay)])
          delay = Math.min(MAX_DELAY_MS, delay * 2)
        }
        if (child !== currentChild || isStopping) return
        currentChild = launch(child.number)
        replaceWhenEnded()
      })
    }
  }

  function replaceOnHangup(keepers: Keeper[]): void {
    let isReplacing = false
    let isReplacementRequested = false
    // A terminal sends SIGHUP when it is closed, which must end the service.
    if (process.stdout.isTTY) return
    process.on('SIGHUP', async () => {
      isReplacementRequested = true
      if (isReplacing) return
      isReplacing = true
      while (isReplacementRequested && !isStopping) {
        isReplacementRequested = false
        await replaceAll(keepers)
      }
      isReplacing = false
    })
  }

  async function replaceAll(keepers: Keeper[]): Promise<void> {
    log.info({ processes }, 'the processes are replaced one after the other')
    for (const keeper of keepers) {
      if (isStopping) return
      if (await keeper.replace()) continue
      log.error({}, 'a new process did not start: the others were not replaced')
      return
    }
    log.info({ processes }, 'the processes were replaced')
  }

  async function stopAll(): Promise<void> {
    isStopping = true
    await Promise.all([...runningChildren].map(child => child.stop()))
  }
}

function startChild(number: number, metrics: ProcessMetricsPage): Child {
  const worker = cluster.fork()
  const send = (message: ToProcess) => {
    if (worker.isConnected()) worker.send(message, () => {})
  }
  const started = Promise.withResolvers<ReadyReport | null>()
  const reporter = { number, readMetrics: () => send({ type: 'read-metrics' }) }
  const ended = (once(worker, 'exit') as Promise<[number | null, string]>).then(([code, signal]) => {
    started.resolve(null)
    metrics.remove(reporter)
    return code ?? signal
  })
  worker.on('error', () => {})
  worker.on('message', (message: ToSupervisor) => {
    if (message.type === 'ready') {
      metrics.add(reporter)
      started.resolve(message)
    } else if (message.type === 'metrics') {
      metrics.reported(reporter, message.metrics)
    } else {
      const { id } = message
      const respond = (page: MetricsPage | null) => send({ type: 'rendered-metrics', id, page })
      metrics.render().then(respond, () => respond(null))
    }
  })
  send({ type: 'start', number })
  return {
    number,
    startedAt: performance.now(),
    started: started.promise,
    ended,
    async stop() {
      worker.process.kill('SIGTERM')
      await Promise.race([ended, pause(STOP_MS)])
      worker.process.kill('SIGKILL')
      await ended
    },
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds))
}
