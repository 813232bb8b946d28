import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { findPostgresBinaries, POSTGRES_URL_VARIABLE, startCluster } from './postgres.ts'

/*
 * `npm test`: one throwaway PostgreSQL for the whole run, then every test file. Arguments go to the runner, for
 * example `npm test -- --test-name-pattern=revoke`; paths among them replace the list of all files.
 */

const ROOT = join(import.meta.dirname, '../../../..')
const ALL_TESTS = 'packages/*/test/**/*.test.ts'
/** Files at once: more than cores, since tests wait for databases, browsers and sockets more than they compute. */
const CONCURRENCY = 5
/** Their files wait longest. They begin first, so that the run does not end with one of them alone. */
const SLOW_FOLDERS = ['/cluster/', '/faults/', '/web/', '/sdk/']

process.exitCode = await runTests(process.argv.slice(2))

async function runTests(args: string[]): Promise<number> {
  const options = args.filter(arg => arg.startsWith('-'))
  const paths = args.filter(arg => !arg.startsWith('-'))
  const files = globSync(paths.length > 0 ? paths : ALL_TESTS, { cwd: ROOT, exclude: isDependency })
  if (files.length === 0) throw new Error(`no test file matches ${paths.join(' ') || ALL_TESTS}`)
  const given = process.env[POSTGRES_URL_VARIABLE]
  const cluster = given || !findPostgresBinaries() ? null : await startCluster()
  const environment = cluster ? { ...process.env, [POSTGRES_URL_VARIABLE]: cluster.url } : process.env
  try {
    return await runNode(
      ['--test', `--test-concurrency=${CONCURRENCY}`, ...options, ...slowFirst(files)],
      environment,
    )
  } finally {
    await cluster?.stop()
  }
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

function slowFirst(files: string[]): string[] {
  const isSlow = (file: string) => SLOW_FOLDERS.some(folder => file.includes(folder))
  const sorted = files.sort()
  return [...sorted.filter(isSlow), ...sorted.filter(file => !isSlow(file))]
}
