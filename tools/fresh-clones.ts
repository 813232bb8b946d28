/**
 * `npm run test:clones -- --count 20 --busy 5 --at-once 2`: tests README's first commands in fresh clones. Each round
 * clones HEAD, runs `npm ci && npm test` in the clone and removes it. At most `--at-once` rounds run at the same time, by
 * default one. The last `--busy` rounds run next to three busy processes. Prints a table. If a round fails, its log is
 * kept and the exit status is 1.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = join(import.meta.dirname, '..')
const BUSY_LOOPS = 3

interface Round {
  round: number
  load: string
  'npm ci': string
  'npm test': string
  tests: string
  result: string
}

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '3' },
    busy: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '1' },
  },
})
const count = Number(values.count)
const rounds: Round[] = []
const busyLoops: ChildProcess[] = []
let startedRounds = 0
try {
  await Promise.all(Array.from({ length: Number(values['at-once']) }, tryClones))
} finally {
  for (const loop of busyLoops) loop.kill('SIGKILL')
}
console.table(rounds.toSorted((a, b) => a.round - b.round))
process.exitCode = rounds.every(({ result }) => result === 'green') ? 0 : 1

/** Runs rounds one after the other, until all have been started. */
async function tryClones(): Promise<void> {
  while (startedRounds < count) {
    const round = ++startedRounds
    const isBusy = round > count - Number(values.busy)
    while (isBusy && busyLoops.length < BUSY_LOOPS) busyLoops.push(startBusyLoop())
    rounds.push(await tryClone(round, isBusy))
    console.table(rounds.slice(-1))
  }
}

async function tryClone(round: number, isBusy: boolean): Promise<Round> {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-clone-'))
  const cloneFolder = join(folder, 'keyway')
  const log = join(folder, 'output.log')
  const gitClone = spawnSync('git', ['clone', '--quiet', ROOT, cloneFolder])
  if (gitClone.status !== 0) throw new Error(`git clone: ${gitClone.stderr}`)
  const install = await run('ci', cloneFolder, log)
  const tests = install.ok ? await run('test', cloneFolder, log) : { ok: false, seconds: '-' }
  const ok = install.ok && tests.ok
  const summary = summaryOf(log)
  rmSync(ok ? folder : cloneFolder, { recursive: true, force: true, maxRetries: 3 })
  return {
    round,
    load: isBusy ? `${BUSY_LOOPS} busy loops` : '-',
    'npm ci': install.seconds,
    'npm test': tests.seconds,
    tests: summary,
    result: ok ? 'green' : `FAILED, see ${log}`,
  }
}

async function run(command: string, cwd: string, log: string): Promise<{ ok: boolean; seconds: string }> {
  const startedAt = performance.now()
  const output = createWriteStream(log, { flags: 'a' })
  await once(output, 'open')
  const child = spawn('npm', [command], { cwd, stdio: ['ignore', output, output] })
  const [status] = await once(child, 'exit')
  output.close()
  return { ok: status === 0, seconds: `${Math.round((performance.now() - startedAt) / 1000)} s` }
}

/** "1234 pass, 0 fail, 0 cancelled, 2 skipped", from the summary of the test runner. */
function summaryOf(log: string): string {
  const text = readFileSync(log, 'utf8')
  const countOf = (name: string) => [...text.matchAll(new RegExp(`^ℹ ${name} (\\d+)$`, 'gm'))].at(-1)?.[1]
  return ['pass', 'fail', 'cancelled', 'skipped'].map(name => `${countOf(name) ?? '?'} ${name}`).join(', ')
}

/** Starts a process that is busy until it is killed, or this one has ended. */
function startBusyLoop(): ChildProcess {
  const loop = 'const parent = process.ppid; while (process.ppid === parent);'
  return spawn(process.execPath, ['--eval', loop], { stdio: 'ignore' })
}
