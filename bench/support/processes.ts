import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { SERVER_CORE, spawnPinned } from './machine.ts'

const LAUNCHER = fileURLToPath(new URL('../../packages/server/bin/keyway.js', import.meta.url))
const FLOOR_PROGRAM = fileURLToPath(new URL('./floor.ts', import.meta.url))
/** How long a database with ten million keys may take to open. */
const READY_TIMEOUT_MS = 60_000

export interface RunningProcess extends AsyncDisposable {
  pid: number
  port: number
  /** Milliseconds from the start of the process to its ready line. */
  readyAfter: number
}

export interface ProcessOptions {
  core?: number | readonly number[]
  /** Further options of Node itself. */
  nodeOptions?: string[]
  /** A single executable, instead of Node with the checkout. */
  executable?: string
}

/** Starts `keyway serve`, by default on `SERVER_CORE`, and waits for its ready line. */
export function startKeyway(
  settings: Record<string, string>,
  options: ProcessOptions = {},
): Promise<RunningProcess> {
  return start(
    options.executable ? ['serve'] : [...(options.nodeOptions ?? []), LAUNCHER, 'serve'],
    /"url":"https?:\/\/[^"]*:(\d+)","msg":"Keyway is ready"/,
    {
      // A limit that is never reached: a bench exchanges few keys very often. Exchanges are counted as usual.
      settings: { KEYWAY_PORT: '0', KEYWAY_EXCHANGE_LIMITS: '1000000/minute', ...settings },
      core: options.core,
      program: options.executable,
    },
  )
}

/** Starts floor.ts, which does only the unavoidable work of an exchange. */
export function startFloor(databaseFile: string): Promise<RunningProcess> {
  return start([FLOOR_PROGRAM, databaseFile], /listening on (\d+)/, { settings: {} })
}

/** Starts another program of the benchmark, which prints `listening on PORT`. */
export function startProgram(name: string, args: string[] = []): Promise<RunningProcess> {
  const program = fileURLToPath(new URL(name, import.meta.url))
  return start([program, ...args], /listening on (\d+)/, { settings: {} })
}

async function start(
  args: string[],
  readyPattern: RegExp,
  options: { settings: Record<string, string>; core?: ProcessOptions['core']; program?: string },
): Promise<RunningProcess> {
  const startedAt = performance.now()
  const { settings, core = SERVER_CORE, program } = options
  const env = { ...environmentWithoutSettings(), ...settings }
  const child = spawnPinned(core, args, { env, stdio: ['ignore', 'pipe', 'inherit'] }, program)
  const port = await readyPort(child, readyPattern)
  return {
    pid: child.pid!,
    port,
    readyAfter: performance.now() - startedAt,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    },
  }
}

function environmentWithoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(KEYWAY_|PORT$)/.test(name)))
}

function readyPort(child: ChildProcess, readyPattern: RegExp): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = ''
    const timer = setTimeout(() => reject(new Error(`not ready in time:\n${output}`)), READY_TIMEOUT_MS)
    child.stdout!.on('data', chunk => {
      if (output.length < 100_000) output += chunk
      const match = readyPattern.exec(output)
      if (!match) return
      clearTimeout(timer)
      resolve(Number(match[1]))
    })
    child.once('exit', code => reject(new Error(`the process ended with ${code}:\n${output}`)))
  })
}
