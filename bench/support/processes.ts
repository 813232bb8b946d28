import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SERVER_CORE, spawnPinned } from './machine.ts'

const LAUNCHER = fileURLToPath(new URL('../../packages/server/bin/keyway.js', import.meta.url))
const FLOOR = fileURLToPath(new URL('./floor.ts', import.meta.url))
/** How long a database with ten million keys may take to open. */
const READY_TIMEOUT_MS = 60_000

export interface RunningProcess extends AsyncDisposable {
  pid: number
  port: number
  /** From the start of the process until it said that it is ready, in milliseconds. */
  readyAfter: number
}

export interface ProcessOptions {
  core?: number
  /** Further options of Node itself. */
  nodeOptions?: string[]
}

/** `keyway serve`, as everybody starts it, on a core of its own. */
export function startKeyway(
  settings: Record<string, string>,
  options: ProcessOptions = {},
): Promise<RunningProcess> {
  return start([...(options.nodeOptions ?? []), LAUNCHER, 'serve'], /ready on http:\/\/\S+?:(\d+)/, {
    // A bench exchanges few keys as often as it can: they are counted as always, and never too many.
    settings: { KEYWAY_PORT: '0', KEYWAY_EXCHANGE_LIMITS: '1000000/minute', ...settings },
    core: options.core,
  })
}

/** The floor: only what nobody can leave out. */
export function startFloor(databaseFile: string): Promise<RunningProcess> {
  return start([FLOOR, databaseFile], /listening on (\d+)/, { settings: {} })
}

/** Any other program of the bench that prints `listening on PORT`. */
export function startProgram(
  name: string,
  args: string[] = [],
  options: ProcessOptions = {},
): Promise<RunningProcess> {
  const program = fileURLToPath(new URL(name, import.meta.url))
  return start([...(options.nodeOptions ?? []), program, ...args], /listening on (\d+)/, { settings: {} })
}

async function start(
  args: string[],
  ready: RegExp,
  { settings, core = SERVER_CORE }: { settings: Record<string, string>; core?: number },
): Promise<RunningProcess> {
  const began = performance.now()
  const child = spawnPinned(core, args, {
    env: { ...withoutSettings(), ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await readyPort(child, ready)
  return {
    pid: child.pid!,
    port,
    readyAfter: performance.now() - began,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** What the operator of the bench has set for a service of his own must not leak into the one that is measured. */
function withoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(KEYWAY_|PORT$)/.test(name)))
}

function readyPort(child: ChildProcess, ready: RegExp): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = ''
    const timer = setTimeout(() => reject(new Error(`not ready in time:\n${output}`)), READY_TIMEOUT_MS)
    child.stdout!.on('data', chunk => {
      if (output.length < 100_000) output += chunk
      const match = ready.exec(output)
      if (!match) return
      clearTimeout(timer)
      resolve(Number(match[1]))
    })
    child.once('exit', code => reject(new Error(`the process ended with ${code}:\n${output}`)))
  })
}
