import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { TEST_FOLDER_VARIABLE } from '../../packages/server/test/support/quick-folder.ts'
import { killGroup, ROOT } from './run-test.ts'
import type { Answer, Request } from './worker.ts'

const TOOL_FOLDER = import.meta.dirname
/**
 * Number of runs after which a process is restarted, since leftovers of tests (listeners, cached modules) slow it down.
 */
const MAX_RUNS_PER_PROCESS = 1_500
/** Loading takes seconds on a busy machine, so it has a timeout of its own and does not count for the first test. */
const LOAD_TIMEOUT_MS = 60_000

type Reply = Answer | 'died' | 'timed out'

export interface WorkerOptions {
  /** The folder for instrumented sources and temporary files. */
  workFolder: string
  env: NodeJS.ProcessEnv
  /** The mutant that is active from the first import on; none by default. */
  mutant?: number
}

/** A process that runs tests one at a time; started on the first request, and restarted after it was killed. */
export function createWorker(options: WorkerOptions) {
  let child: ChildProcess | null = null
  let folder = ''
  let runCount = 0
  const loadedFiles = new Set<string>()

  function start(): ChildProcess {
    folder = mkdtempSync(join(options.workFolder, 'worker-'))
    const temporaryFolder = join(folder, 'tmp')
    mkdirSync(temporaryFolder)
    // If this process is root, servers of tests run as another user, who must be able to enter the folder.
    chmodSync(folder, 0o755)
    runCount = 0
    return spawn(process.execPath, ['--no-warnings', join(TOOL_FOLDER, 'worker.ts')], {
      cwd: ROOT,
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: {
        ...process.env,
        ...options.env,
        NODE_OPTIONS: `--require ${JSON.stringify(join(TOOL_FOLDER, 'switch.cjs'))}`,
        KEYWAY_MUTANTS: options.workFolder,
        KEYWAY_MUTANT_ON: String(options.mutant ?? -1),
        TMPDIR: temporaryFolder,
        [TEST_FOLDER_VARIABLE]: folder,
      },
    })
  }

  function stop(): void {
    if (!child) return
    child.removeAllListeners()
    killGroup(child.pid!)
    child = null
    loadedFiles.clear()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }

  function sendRequest(request: Request, timeoutMs: number): Promise<Reply> {
    child ??= start()
    const worker = child
    return new Promise(resolve => {
      const end = (reply: Reply) => {
        clearTimeout(timer)
        worker.removeAllListeners()
        if (typeof reply === 'string') stop()
        resolve(reply)
      }
      const timer = setTimeout(end, timeoutMs, 'timed out')
      worker.once('message', answer => end(answer as Answer))
      worker.once('exit', () => end('died'))
      worker.send(request, error => error && end('died'))
    })
  }

  /** Loads a test file, which `run` does too if necessary. @returns `died` or `timed out` in the same cases as `run` */
  async function load(file: string): Promise<Reply> {
    const reply = await sendRequest({ kind: 'load', file }, LOAD_TIMEOUT_MS)
    if (typeof reply !== 'string' && reply.kind === 'loaded') loadedFiles.add(file)
    return reply
  }

  return {
    stop,
    load,
    /**
     * Runs a test. Loads its file first if the process has not loaded it yet.
     *
     * @returns `died` or `timed out` if the process ended or did not answer in time; it is then restarted
     */
    async run(file: string, title: string, mutant: number, timeoutMs: number): Promise<Reply> {
      if (++runCount > MAX_RUNS_PER_PROCESS) stop()
      if (!loadedFiles.has(file)) {
        const reply = await load(file)
        if (!loadedFiles.has(file)) return reply
      }
      return sendRequest({ kind: 'run', file, title, mutant }, timeoutMs)
    },
  }
}

export type Worker = ReturnType<typeof createWorker>
