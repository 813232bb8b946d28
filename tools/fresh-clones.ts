/**
 * `npm run test:clones -- --count 20 --busy 5 --at-once 2`: tests README's first commands in a row of fresh clones. Each
 * round clones HEAD, runs `npm ci && npm test` in the clone with the machine's own Node, and removes it. At most
 * `--at-once` rounds run at the same time, by default one. The last `--busy` rounds run next to three busy processes.
 *
 * Prints a table, and records each round in fresh-clones.json. A row takes hours; with `--continue` the recorded rounds
 * count if they were green, followed by no failed one, and nothing but that file has changed since. If a round fails, its
 * log is kept and the exit status is 1.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = join(import.meta.dirname, '..')
const RECORDS = 'tools/fresh-clones.json'
const BUSY_LOOPS = 3

interface Round {
  commit: string
  startedAt: string
  /** The number of busy processes next to it. */
  busyLoops: number
  /** The load average of the last five minutes, at the end. */
  load: number
  installSeconds: number
  testSeconds: number
  tests: string
  result: 'green' | 'failed'
}

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '3' },
    busy: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '1' },
    continue: { type: 'boolean', default: false },
  },
})
const commit = git('rev-parse', 'HEAD').trim()
const row = values.continue ? greenRow() : []
const busyLoops: ChildProcess[] = []
const busyLeft = Math.max(0, Number(values.busy) - row.filter(round => round.busyLoops > 0).length)
const quietLeft = Math.max(
  0,
  Number(values.count) - Number(values.busy) - row.filter(round => round.busyLoops === 0).length,
)
const plannedRounds = [...Array<boolean>(quietLeft).fill(false), ...Array<boolean>(busyLeft).fill(true)]
console.log(`${row.length} recorded rounds count, ${plannedRounds.length} follow.`)
try {
  await Promise.all(Array.from({ length: Number(values['at-once']) }, tryClones))
} finally {
  for (const loop of busyLoops) loop.kill('SIGKILL')
}
show(row)
process.exitCode = row.every(({ result }) => result === 'green') ? 0 : 1

/** Runs planned rounds one after the other, until all have been started. */
async function tryClones(): Promise<void> {
  for (;;) {
    const isBusy = plannedRounds.shift()
    if (isBusy === undefined) return
    while (isBusy && busyLoops.length < BUSY_LOOPS) busyLoops.push(startBusyLoop())
    const round = await tryClone(isBusy)
    row.push(round)
    writeFileSync(join(ROOT, RECORDS), `${JSON.stringify([...records(), round], null, 2)}\n`)
    show([round])
  }
}

async function tryClone(isBusy: boolean): Promise<Round> {
  const startedAt = new Date().toISOString()
  const folder = mkdtempSync(join(tmpdir(), 'keyway-clone-'))
  const cloneFolder = join(folder, 'keyway')
  const log = join(folder, 'output.log')
  git('clone', '--quiet', '--no-checkout', ROOT, cloneFolder)
  git('-C', cloneFolder, 'checkout', '--quiet', '--detach', commit)
  const install = await run('ci', cloneFolder, log)
  const tests = install.ok ? await run('test', cloneFolder, log) : { ok: false, seconds: 0 }
  const ok = install.ok && tests.ok
  const round: Round = {
    commit,
    startedAt,
    busyLoops: isBusy ? BUSY_LOOPS : 0,
    load: Math.round(loadavg()[1]!),
    installSeconds: install.seconds,
    testSeconds: tests.seconds,
    tests: summaryOf(log),
    result: ok ? 'green' : 'failed',
  }
  if (!ok) console.log(`Failed: see ${log}`)
  rmSync(ok ? folder : cloneFolder, { recursive: true, force: true, maxRetries: 3 })
  return round
}

async function run(command: string, cwd: string, log: string): Promise<{ ok: boolean; seconds: number }> {
  const startedAt = performance.now()
  const output = createWriteStream(log, { flags: 'a' })
  await once(output, 'open')
  const env = { ...process.env, PATH: pathWithoutModules() }
  const child = spawn('npm', [command], { cwd, env, stdio: ['ignore', output, output] })
  const [status] = await once(child, 'exit')
  output.close()
  return { ok: status === 0, seconds: Math.round((performance.now() - startedAt) / 1000) }
}

/** PATH without the folders that npm adds for a script, in which the right Node is already installed. */
function pathWithoutModules(): string {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.filter(folder => !folder.includes('node_modules')).join(delimiter)
}

/** "1234 pass, 0 fail, 0 cancelled, 2 skipped", from the summary of the test runner. */
function summaryOf(log: string): string {
  const text = readFileSync(log, 'utf8')
  const countOf = (name: string) => [...text.matchAll(new RegExp(`^ℹ ${name} (\\d+)$`, 'gm'))].at(-1)?.[1]
  return ['pass', 'fail', 'cancelled', 'skipped'].map(name => `${countOf(name) ?? '?'} ${name}`).join(', ')
}

function show(rounds: readonly Round[]): void {
  console.table(rounds.map(({ commit, ...round }) => ({ commit: commit.slice(0, 8), ...round })))
}

function records(): Round[] {
  const file = join(ROOT, RECORDS)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
}

/** The last recorded rounds that were green, of commits that differ from HEAD in the records only. */
function greenRow(): Round[] {
  const all = records()
  const lastOther = all.findLastIndex(({ result, commit }) => result !== 'green' || !isSame(commit))
  return all.slice(lastOther + 1)
}

function isSame(recordedCommit: string): boolean {
  const comparison = ['diff', '--quiet', recordedCommit, commit, '--', '.', `:(exclude)${RECORDS}`]
  return spawnSync('git', comparison, { cwd: ROOT }).status === 0
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' })
}

/** Starts a process that is busy until it is killed, or this one has ended. */
function startBusyLoop(): ChildProcess {
  const loop = 'const parent = process.ppid; while (process.ppid === parent);'
  return spawn(process.execPath, ['--eval', loop], { stdio: 'ignore' })
}
