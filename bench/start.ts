import { existsSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { shippedPackages } from '../tools/shipped-packages.ts'
import { type BenchDatabase, postgresDatabase, sqliteDatabase } from './support/databases.ts'
import { cpuSeconds, pinBench, residentBytes } from './support/machine.ts'
import { startKeyway } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures start-up time, idle memory, and the size of the installation; also of the single executable, if
 * `npm run build:binary` has made one.
 */

const START_ROUNDS = QUICK ? 5 : 11
const IDLE_BEFORE_READING_MS = 3000
const MB = 1024 * 1024
const ROOT = join(import.meta.dirname, '..')
const EXECUTABLE = join(ROOT, 'dist/keyway')

pinBench()
const rows: Row[] = []
const targets: Target[] = []
await using sqlite = await sqliteDatabase(1000)
await using postgres = await postgresDatabase(1000)
await measure('sqlite', sqlite)
await measure('postgres', postgres)
if (existsSync(EXECUTABLE)) {
  await measure('sqlite, single executable', sqlite, EXECUTABLE)
  await measure('postgres, single executable', postgres, EXECUTABLE)
}
report(
  'start',
  { Start: rows, 'Installed without development tools': [await measureInstallation()] },
  targets,
)

async function measure(name: string, database: BenchDatabase, executable?: string): Promise<void> {
  const times: number[] = []
  const processorTimes: number[] = []
  for (let start = 0; start < START_ROUNDS; start++) {
    await using server = await startKeyway(database.settings, { executable })
    times.push(server.readyAfter)
    processorTimes.push(cpuSeconds(server.pid) * 1000)
  }
  await using server = await startKeyway(database.settings, { executable })
  await wait(IDLE_BEFORE_READING_MS)
  const idleMegabytes = residentBytes(server.pid) / MB
  rows.push({
    '': name,
    'ready after ms': spread(times, 0),
    'processor time until then ms': spread(processorTimes, 0),
    'memory at rest MB': Math.round(idleMegabytes),
  })
  targets.push(
    {
      what: `ready on ${name}`,
      wanted: '≤ 500 ms',
      measured: `${spread(times, 0)} ms`,
      reached: median(times) <= 500,
    },
    {
      what: `memory at rest, ${name}`,
      wanted: '≤ 120 MB',
      measured: `${Math.round(idleMegabytes)} MB`,
      reached: idleMegabytes <= 120,
    },
  )
}

/** Disk space of the packages that `npm ci --omit=dev` installs, according to the lock file. */
async function measureInstallation(): Promise<Row> {
  let [nodeBytes, otherBytes, count] = [0, 0, 0]
  for (const { path } of shippedPackages()) {
    if (!existsSync(join(ROOT, path))) continue
    const bytes = await sizeOf(join(ROOT, path))
    count++
    if (/node_modules\/node(-bin-[^/]*)?$/.test(path)) nodeBytes += bytes
    else otherBytes += bytes
  }
  return {
    packages: count,
    'Node itself MB': Math.round(nodeBytes / MB),
    'everything else MB': Math.round(otherBytes / MB),
  }
}

async function sizeOf(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules') bytes += await sizeOf(path)
    } else if (entry.isFile()) bytes += statSync(path).size
  }
  return bytes
}
