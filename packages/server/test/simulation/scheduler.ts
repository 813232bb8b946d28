import { AsyncLocalStorage } from 'node:async_hooks'
import { TaskHeap } from './task-heap.ts'
import type { Trace } from './trace.ts'

/** A process of the simulation: a node, a client or the database. */
export class SimulatedProcess {
  readonly name: string
  /** A dead process does nothing any more: its timers and the answers that it awaits are dropped. */
  isAlive = true
  /** Until this time it does nothing, like a suspended machine. */
  pausedUntil = 0
  /** Milliseconds that each of its tasks takes. */
  taskMs = 0
  /** Milliseconds by which its time of day is ahead of that of the simulation; negative if it is behind. */
  systemOffset = 0
  busyUntil = 0
  /** The process crashes instead of running the task that brings this number to zero. */
  tasksLeft = Number.POSITIVE_INFINITY
  onCrash = () => {}

  constructor(name: string) {
    this.name = name
  }
}

/** The process whose code is running, which the async context keeps over every await. */
const processStorage = new AsyncLocalStorage<SimulatedProcess>()
const NO_PROCESS = new SimulatedProcess('world')
/** Node's own function, since globals.ts replaces the global one. */
const originalSetImmediate = globalThis.setImmediate

export function currentProcess(): SimulatedProcess {
  return processStorage.getStore() ?? NO_PROCESS
}

/**
 * Simulated time. A task is what a real process would do in one turn of its event loop: a timer, an answer, a message.
 * Tasks run one by one in the order of their times, each until its promises have settled, so that everything follows
 * from the order of the tasks.
 */
export class Scheduler {
  /** Milliseconds since the start of the run. */
  now = 0
  /** Once true, no further task runs. */
  isStopped = false
  tasks = 0
  readonly #heap = new TaskHeap()
  readonly #trace: Trace

  constructor(trace: Trace) {
    this.#trace = trace
  }

  /** Calls `run` once in the process `owner` after `ms`. Returns a function that cancels it. */
  after(owner: SimulatedProcess, ms: number, name: string, run: () => void): () => void {
    const at = this.now + Math.max(0, ms)
    const task = { at, due: at, order: 0, owner, name, run, isCancelled: false }
    this.#heap.push(task)
    return () => {
      task.isCancelled = true
    }
  }

  /** Runs `work` now as code of the process `owner`, to which its timers belong, too. */
  within<Value>(owner: SimulatedProcess, work: () => Value): Value {
    return processStorage.run(owner, work)
  }

  /** Runs all tasks until a time, or until the run is stopped. */
  async runUntil(time: number): Promise<void> {
    await settlePromises()
    while (!this.isStopped) {
      const task = this.#heap.next(time)
      if (!task) break
      if (task.isCancelled || !task.owner.isAlive) continue
      this.now = Math.max(this.now, task.at)
      const { owner } = task
      const freeAt = Math.max(owner.pausedUntil, owner.busyUntil)
      if (freeAt > this.now) {
        task.at = freeAt
        this.#heap.push(task)
        continue
      }
      owner.busyUntil = this.now + owner.taskMs
      if (--owner.tasksLeft <= 0) {
        owner.onCrash()
        continue
      }
      this.tasks++
      this.#trace.add(this.now, owner.name, task.name)
      processStorage.run(owner, task.run)
      await settlePromises()
    }
    if (!this.isStopped) this.now = Math.max(this.now, time)
  }
}

/** Resolves when all promises have settled but those that wait for a task of the scheduler. */
function settlePromises(): Promise<void> {
  return new Promise(resolve => originalSetImmediate(resolve))
}
