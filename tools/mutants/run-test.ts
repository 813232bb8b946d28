import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { TEST_FOLDER_VARIABLE } from '../../packages/server/test/support/quick-folder.ts'
import type { Mutant } from './operators.ts'

export const ROOT = join(import.meta.dirname, '../..')

const TOOL_FOLDER = import.meta.dirname
const UNTRACKED_PROMISES = join(ROOT, 'packages/server/test/support/untracked-promises.cjs')
/** Part of the titles of tests on PostgreSQL, which repeat those on SQLite and are skipped unless `onBothEngines`. */
const SKIPPED_TITLE = 'on postgres'
const KILL_GRACE_MS = 1_000

export interface TestRun {
  outcome: 'passed' | 'failed' | 'timed out'
  /** The title of the first test that failed; empty if none did, or if it is not known. */
  failed: string
  seconds: number
}

export interface TestRunOptions {
  /** Absolute path of the source file, and its edits in order of position. */
  mutant?: { file: string; edits: Pick<Mutant, 'start' | 'end' | 'text'>[] }
  timeoutMs: number
  /** The folder for temporary files of the run. */
  workFolder: string
  onBothEngines?: boolean
  env?: NodeJS.ProcessEnv
}

/** Runs one test file until its first failure, in a process group of its own that ends with it. */
export async function runTest(file: string, options: TestRunOptions): Promise<TestRun> {
  const folder = mkdtempSync(join(options.workFolder, 'run-'))
  const temporaryFolder = join(folder, 'tmp')
  mkdirSync(temporaryFolder)
  const startedAt = performance.now()
  const preloads = [UNTRACKED_PROMISES, join(TOOL_FOLDER, 'hook.cjs')].map(
    path => `--require ${JSON.stringify(path)}`,
  )
  const child = spawn(
    process.execPath,
    [
      `--test-reporter=${join(TOOL_FOLDER, 'first-failure.mjs')}`,
      ...(options.onBothEngines ? [] : [`--test-skip-pattern=${SKIPPED_TITLE}`]),
      join(ROOT, file),
    ],
    {
      cwd: ROOT,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {
        ...process.env,
        ...options.env,
        NODE_OPTIONS: preloads.join(' '),
        TMPDIR: temporaryFolder,
        [TEST_FOLDER_VARIABLE]: folder,
        ...(options.mutant && { KEYWAY_MUTANT: JSON.stringify(options.mutant) }),
      },
    },
  )
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killGroup(child.pid!)
  }, options.timeoutMs)
  const exited = new Promise<number | null>(resolve => child.once('exit', resolve))
  const output = text(child.stdout)
  const status = await exited
  clearTimeout(timer)
  killGroup(child.pid!)
  // Children that outlive the test may keep its output open for a moment.
  const printedText = await Promise.race([
    output,
    new Promise<string>(resolve => setTimeout(resolve, KILL_GRACE_MS, '')),
  ])
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  const seconds = (performance.now() - startedAt) / 1000
  if (isLate) return { outcome: 'timed out', failed: '', seconds }
  return { outcome: status === 0 ? 'passed' : 'failed', failed: printedText.split('\n')[0] ?? '', seconds }
}

export function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The kill fails if all processes of the group have ended.
  }
}
