import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { inTime } from '../../support/patience.ts'

const GUARD = fileURLToPath(new URL('guard.ts', import.meta.url))
const SHOWN_OUTPUT = 2_000
const END_MS = 10_000

/** The client under test, as a process with KEYWAY_URL and KEYWAY_API_KEY, which ends with this one. */
export class Program {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown[]>
  #output = ''

  constructor([command, ...words]: readonly [string, ...string[]], settings: Record<string, string>) {
    const env = { ...process.env, ...settings }
    this.#child = spawn(process.execPath, [GUARD, command, ...words], { env, detached: true, stdio: 'pipe' })
    this.#exited = once(this.#child, 'exit')
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.on('data', chunk => (this.#output += chunk))
  }

  /** The last part of its output. */
  get output(): string {
    return this.#output.slice(-SHOWN_OUTPUT)
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined
  }

  /** Waits until it exits by itself, with a status that is not 0. */
  async stopsForGood(): Promise<void> {
    await inTime('the client ends when it is stopped permanently', this.#exited, END_MS)
    if (this.#child.exitCode === 0)
      throw new Error('the client ended with status 0, as if nothing had happened')
  }

  /** Stops it and its children. */
  async kill(): Promise<void> {
    if (this.#child.pid === undefined) return
    try {
      process.kill(-this.#child.pid, 'SIGKILL')
    } catch {
      return // The program had ended already.
    }
    if (this.isRunning) await this.#exited
  }
}
