import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { inTime } from '../../support/patience.ts'

const GUARD = fileURLToPath(new URL('guard.ts', import.meta.url))
const MAX_SHOWN_CHARACTERS = 2_000
const EXIT_TIMEOUT_MS = 10_000

/** The client under test, as a process with KEYWAY_URL and KEYWAY_API_KEY, which is killed when this process ends. */
export class Program {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown[]>
  #output = ''

  constructor([command, ...args]: readonly [string, ...string[]], settings: Record<string, string>) {
    const env = { ...process.env, ...settings }
    this.#child = spawn(process.execPath, [GUARD, command, ...args], { env, detached: true, stdio: 'pipe' })
    this.#exited = once(this.#child, 'exit')
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.on('data', chunk => (this.#output += chunk))
  }

  /** The last part of the client's output. */
  get output(): string {
    return this.#output.slice(-MAX_SHOWN_CHARACTERS)
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined
  }

  /** Waits until the client exits by itself, and throws if its status is 0. */
  async stopsForGood(): Promise<void> {
    await inTime('the client ends when it is stopped permanently', this.#exited, EXIT_TIMEOUT_MS)
    if (this.#child.exitCode === 0)
      throw new Error('the client ended with status 0, as if nothing had happened')
  }

  /** Kills the client and its children. */
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
