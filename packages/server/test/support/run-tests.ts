import { spawn } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { installOnce, isInstalled } from '../../../../tools/npm-folder.ts'
import { groupByFolder } from './by-folder.ts'
import { findPostgresBinaries, POSTGRES_URL_VARIABLE, startCluster } from './postgres.ts'
import { type Leak, scanRecording } from './secret-scan.ts'

/*
 * `npm test`: starts one temporary PostgreSQL for the whole run, then runs all test files, one process per folder.
 * Arguments are passed to the runner, for example `npm test -- --test-name-pattern=revoke`; paths replace the list of
 * all files.
 *
 * All processes record their output and their secrets (recording.ts). The run fails if a secret occurs in the output.
 */

const ROOT = join(import.meta.dirname, '../../../..')
const ALL_TESTS = 'packages/*/test/**/*.test.ts'
/**
 * The number of concurrent processes: one more than cores, since tests also wait. With more, tests would exceed their
 * timeouts on a busy machine.
 */
const CONCURRENCY = availableParallelism() + 1
/** Default timeout of a test, so that one that hangs fails and is named. */
const LONGEST_TEST_MS = 300_000
const DEFAULTS = [`--test-concurrency=${CONCURRENCY}`, `--test-timeout=${LONGEST_TEST_MS}`]
/** The lock files of the packages that tests need beyond `npm ci`. */
const LOCK_FILES = [
  'tools/package-lock.json',
  'tools/html-validate/package-lock.json',
  'examples/*/package-lock.json',
]
const SHOWN_LEAKS = 40
/** Options of the runner that need a value, which would be mistaken for a path if it were an argument of its own. */
const NEEDS_VALUE =
  /^--test-(?:name-pattern|skip-pattern|concurrency|timeout|shard|reporter(?:-destination)?)$/
const PRELOADS = ['record.cjs', 'untracked-promises.cjs']

process.exitCode = await runTests(process.argv.slice(2))

async function runTests(args: string[]): Promise<number> {
  const options = args.filter(arg => arg.startsWith('-'))
  const optionWithoutValue = options.find(option => NEEDS_VALUE.test(option))
  if (optionWithoutValue) {
    console.error(`Write the value behind an equals sign: ${optionWithoutValue}=VALUE`)
    return 1
  }
  const paths = args.filter(arg => !arg.startsWith('-'))
  const files = globSync(paths.length > 0 ? paths : ALL_TESTS, { cwd: ROOT, exclude: isDependency })
  if (files.length === 0) {
    console.error(`No test file matches ${paths.join(' ') || ALL_TESTS}.`)
    return 1
  }
  if (paths.length === 0) await installPackages()
  const givenUrl = process.env[POSTGRES_URL_VARIABLE]
  const cluster = givenUrl || !findPostgresBinaries() ? null : await startCluster()
  const recordingFolder = mkdtempSync(join(tmpdir(), 'keyway-run-'))
  const environment = {
    ...process.env,
    ...(cluster ? { [POSTGRES_URL_VARIABLE]: cluster.url } : {}),
    TEST_RECORDING: recordingFolder,
    NODE_OPTIONS: withPreloads(process.env.NODE_OPTIONS ?? ''),
  }
  try {
    const slowestTestsFile = join(recordingFolder, 'slowest.txt')
    const reporterOptions = options.some(option => option.startsWith('--test-reporter'))
      ? []
      : reportersTo(slowestTestsFile)
    const status = await runNode(
      ['--test', ...DEFAULTS, ...reporterOptions, ...options, ...groupByFolder(files, ROOT, recordingFolder)],
      environment,
    )
    if (existsSync(slowestTestsFile)) process.stdout.write(readFileSync(slowestTestsFile, 'utf8'))
    return reportSecrets(recordingFolder) ? status : status || 1
  } finally {
    await cluster?.stop()
  }
}

/** Installs the packages of LOCK_FILES, so that no test waits for a slow registry. Tests report those that are missing. */
async function installPackages(): Promise<void> {
  const missingFolders = globSync(LOCK_FILES, { cwd: ROOT, exclude: isDependency })
    .map(path => dirname(path))
    .filter(folder => !isInstalled(join(ROOT, folder)))
  if (missingFolders.length === 0) return
  console.log(`Installing the packages of ${missingFolders.join(', ')} …`)
  await Promise.all(missingFolders.map(folder => installOnce(join(ROOT, folder))))
}

/** The default reporter, and one that writes the ten slowest tests to a file, shown after the summary. */
function reportersTo(slowestTestsFile: string): string[] {
  return [
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${join(import.meta.dirname, 'slowest-tests.mjs')}`,
    `--test-reporter-destination=${slowestTestsFile}`,
  ]
}

function withPreloads(options: string): string {
  const preloads = PRELOADS.map(name => `--require ${JSON.stringify(join(import.meta.dirname, name))}`)
  return [options, ...preloads.filter(preload => !options.includes(preload))].join(' ').trim()
}

/** Reports leaked secrets; returns whether there are none. Removes a recording without leaks, which nobody needs. */
function reportSecrets(recordingFolder: string): boolean {
  const { secrets, processes, bytes, leaks } = scanRecording(recordingFolder)
  const findingText = leaks.length === 0 ? 'none found' : `${count(leaks.length)} FOUND`
  const megabytes = (bytes / 1e6).toFixed(1)
  console.log(
    `ℹ secrets ${count(secrets)} issued, ${megabytes} MB of output from ${count(processes)} processes scanned, ${findingText}`,
  )
  if (leaks.length === 0) rmSync(recordingFolder, { recursive: true, maxRetries: 3 })
  for (const leak of leaks.slice(0, SHOWN_LEAKS)) console.log(`✖ ${describeLeak(leak)}`)
  return leaks.length === 0
}

function describeLeak({ kind, place, file, line }: Leak): string {
  return `secret in output: ${kind} in ${place} (${file}, line ${line})`
}

function count(figure: number): string {
  return figure.toLocaleString('en')
}

function isDependency(path: string): boolean {
  return path.split('/').includes('node_modules')
}

function runNode(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  return new Promise(resolve => {
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: 'inherit', env })
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
    child.on('exit', code => resolve(code ?? 1))
  })
}
