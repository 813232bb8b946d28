import type { SimulatedProcess } from './scheduler.ts'

export interface Task {
  at: number
  /** When it should run. If its process is busy then, it runs later, but before tasks of that process due after it. */
  readonly due: number
  /** The number of the push, which orders tasks that are due at the same time. */
  order: number
  owner: SimulatedProcess
  name: string
  run(): void
  isCancelled: boolean
}

/** A binary heap of tasks by time. */
export class TaskHeap {
  readonly #tasks: Task[] = []
  #order = 0

  push(task: Task): void {
    const tasks = this.#tasks
    task.order ||= ++this.#order
    let at = tasks.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(task, tasks[parent]!)) break
      tasks[at] = tasks[parent]!
      at = parent
    }
    tasks[at] = task
  }

  /** Removes and returns the first task; null if there is none, or if it is later than `until`. */
  next(until: number): Task | null {
    const tasks = this.#tasks
    const first = tasks[0]
    if (!first || first.at > until) return null
    const last = tasks.pop()!
    if (tasks.length > 0) this.#sink(last)
    return first
  }

  #sink(task: Task): void {
    const tasks = this.#tasks
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= tasks.length) break
      if (child + 1 < tasks.length && isBefore(tasks[child + 1]!, tasks[child]!)) child++
      if (!isBefore(tasks[child]!, task)) break
      tasks[at] = tasks[child]!
      at = child
    }
    tasks[at] = task
  }
}

function isBefore(left: Task, right: Task): boolean {
  if (left.at !== right.at) return left.at < right.at
  return left.due < right.due || (left.due === right.due && left.order < right.order)
}
