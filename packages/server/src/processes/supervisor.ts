import cluster from 'node:cluster'
import { once } from 'node:events'
import type { Log } from '../log.ts'
import type { ToProcess, ToSupervisor } from './messages.ts'
import { createProcessMetricsPage, type ProcessMetricsPage } from './process-metrics.ts'

/** Processes stop within 9 s (cli/serve.ts); one that does not is killed. */
const STOP_MS = 9_500
/** A process that ran for at least this long is restarted at once when it ends. */
const STABLE_MS = 10_000
/** Delays before a process that ended sooner is restarted: doubled each time, up to the second value. */
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 30_000

export interface Ready {
  url: string
  isAdministered: boolean
}

export interface SupervisorOptions {
  /** At least 2. */
  processes: number
  log: Log
  /** Resolves when the node is to stop. */
  stop: Promise<void>
  /** Called once, when all processes listen. */
  onReady(ready: Ready): void
}

/** One process of the node. */
interface Child {
  number: number
  startedAt: number
  /** When it listens; null if it ended before. */
  readonly started: Promise<Ready | null>
  /** The exit status, or the name of the signal. */
  readonly ended: Promise<number | string>
  /** Lets it drain; resolves when it has ended. */
  stop(): Promise<void>
}

/** Keeps one process running, by restarting it. */
interface Keeper {
  /** Starts a replacement, then stops the present process; false if the replacement did not start. */
  replace(): Promise<boolean>
}

/**
 * Runs this command as several processes that accept connections from one listening socket, until `stop` resolves. Each is
 * a node of its own for the others. A process that ends unasked is replaced; SIGHUP replaces all, one after the other, each
 * once its successor listens (not on a terminal).
 *
 * @returns the exit status: 0 after `stop`, or that of a process that could not start at the beginning
 */
export async function supervise({ processes, log, stop, onReady }: SupervisorOptions): Promise<number> {
  // Processes accept by themselves: passing connections on would cost 45 µs each and one busy process.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  const metrics = createProcessMetricsPage()
  const running = new Set<Child>()
  let isStopping = false
  const stopped = stop.then(() => {
    isStopping = true
  })

  // Started alone: it migrates the database, and reports mistakes in the settings once.
  const first = launch(1)
  const others = (await first.started) ? Array.from({ length: processes - 1 }, (_, at) => launch(at + 2)) : []
  const children = [first, ...others]
  const started = await Promise.all(children.map(child => child.started))
  const failed = children[started.indexOf(null)]
  if (failed && !isStopping) {
    const status = await failed.ended
    await stopAll()
    return typeof status === 'number' && status > 0 ? status : 1
  }
  if (!isStopping) {
    onReady(started[0]!)
    replaceOnHangup(children.map(keep))
  }
  await stopped
  await stopAll()
  return 0

  function launch(number: number): Child {
    const child = startChild(number, metrics)
    running.add(child)
    void child.ended.then(() => running.delete(child))
    return child
  }

  function keep(initial: Child): Keeper {
    let current = initial
    let delay = FIRST_DELAY_MS
    watch()
    return {
      async replace() {
        const next = launch(current.number)
        if (!(await next.started)) return false
        const former = current
        current = next
        watch()
        await former.stop()
        return true
      },
    }

    function watch(): void {
      const child = current
      void child.ended.then(async status => {
        if (child !== current || isStopping) return
        log.error({ process: child.number, status }, 'a process ended and is replaced')
        if (performance.now() - child.startedAt >= STABLE_MS) {
          delay = FIRST_DELAY_MS
        } else {
          await Promise.race([stopped, after(delay)])
          delay = Math.min(MAX_DELAY_MS, delay * 2)
        }
        if (child !== current || isStopping) return
        current = launch(child.number)
        watch()
      })
    }
  }

  function replaceOnHangup(keepers: Keeper[]): void {
    let isReplacing = false
    let isRequested = false
    // A terminal sends SIGHUP when it is closed, which ends the service.
    if (process.stdout.isTTY) return
    process.on('SIGHUP', async () => {
      isRequested = true
      if (isReplacing) return
      isReplacing = true
      while (isRequested && !isStopping) {
        isRequested = false
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
    await Promise.all([...running].map(child => child.stop()))
  }
}

function startChild(number: number, metrics: ProcessMetricsPage): Child {
  const worker = cluster.fork()
  const tell = (message: ToProcess) => {
    if (worker.isConnected()) worker.send(message, () => {})
  }
  const started = Promise.withResolvers<Ready | null>()
  const reporter = { number, readMetrics: () => tell({ type: 'read-metrics' }) }
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
      const answer = (page: Awaited<ReturnType<ProcessMetricsPage['render']>> | null) =>
        tell({ type: 'rendered-metrics', id, page })
      metrics.render().then(answer, () => answer(null))
    }
  })
  tell({ type: 'start', number })
  return {
    number,
    startedAt: performance.now(),
    started: started.promise,
    ended,
    async stop() {
      worker.process.kill('SIGTERM')
      await Promise.race([ended, after(STOP_MS)])
      worker.process.kill('SIGKILL')
      await ended
    },
  }
}

function after(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds))
}
