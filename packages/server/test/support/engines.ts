import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext } from 'node:test'
import { createLog, type Log } from '../../src/log.ts'
import { createSecrets, type Secrets } from '../../src/secrets.ts'
import { createStorage, type DatabaseStorage, type StorageConfig } from '../../src/storage/database.ts'
import { createTestClock, type TestClock } from './clock.ts'
import { skipWithout } from './missing-servers.ts'
import { createDatabase, findPostgresBinaries, POSTGRES_URL_VARIABLE } from './postgres.ts'
import { quickFolder } from './quick-folder.ts'

export type EngineName = 'sqlite' | 'postgres'

const SQLITE_FILE = 'keyway.db'
const TEST_SECRET = Buffer.alloc(32, 7)

export interface TestStorage {
  storage: DatabaseStorage
  clock: TestClock
  secrets: Secrets
  log: Log
  /** The configuration, with which `createStorage` opens the same database again, as another process would. */
  config: StorageConfig
  /** Opens a second Storage on the same database, as another node would. `close` closes it too. */
  reopen(): Promise<DatabaseStorage>
  close(): Promise<void>
}

/** Calls `define` in a `describe` per engine. Without PostgreSQL its tests are skipped, or fail with `CI=true`. */
export function forEachEngine(define: (engine: EngineName) => void): void {
  describe('on sqlite', () => define('sqlite'))
  describe('on postgres', { skip: postgresMissing() }, () => define('postgres'))
}

export function postgresMissing(): string | false {
  const isInstalled = Boolean(process.env[POSTGRES_URL_VARIABLE] || findPostgresBinaries())
  return skipWithout(isInstalled, 'PostgreSQL is not installed here')
}

/** Opens an empty, migrated database. It is closed and removed after the test `t`; without `t`, call `close`. */
export async function openTestStorage(
  engine: EngineName,
  t?: TestContext,
  { poolSize }: Pick<StorageConfig, 'poolSize'> = {},
): Promise<TestStorage> {
  const log = createLog('silent')
  const { config: fresh, remove } = await freshDatabase(engine, log)
  const config = { ...fresh, poolSize, lowBalance: 500_000 }
  const openedStorages: DatabaseStorage[] = []
  const reopen = async () => {
    const storage = await createStorage(config, log)
    openedStorages.push(storage)
    return storage
  }
  const close = async () => {
    await Promise.all(openedStorages.splice(0).map(storage => storage.close()))
    await remove()
  }
  const storage = await reopen()
  t?.after(close)
  const secrets = createSecrets([TEST_SECRET])
  return { storage, clock: createTestClock(), secrets, log, config, reopen, close }
}

async function freshDatabase(
  engine: EngineName,
  log: Log,
): Promise<{ config: StorageConfig; remove(): Promise<void> }> {
  if (engine === 'sqlite') {
    const dataDir = mkdtempSync(join(quickFolder(), 'keyway-sqlite-'))
    await writeMigratedSqlite(dataDir)
    return {
      config: sqliteConfig(dataDir),
      remove: async () => rmSync(dataDir, { recursive: true, force: true }),
    }
  }
  const database = await createDatabase(async url => {
    await (await createStorage(postgresConfig(url), log)).close()
  })
  return { config: postgresConfig(database.url), remove: database.drop }
}

/** Writes an empty, migrated database into a data folder, for services whose first start is not what is tested. */
export async function writeMigratedSqlite(dataDir: string): Promise<void> {
  writeFileSync(join(dataDir, SQLITE_FILE), await migratedSqlite(), { mode: 0o600, flag: 'wx' })
}

let pendingTemplate: Promise<Buffer> | undefined

/** Made once for the process: the migrations cost as much as a short test. */
function migratedSqlite(): Promise<Buffer> {
  pendingTemplate ??= (async () => {
    const folder = mkdtempSync(join(quickFolder(), 'keyway-sqlite-'))
    try {
      await (await createStorage(sqliteConfig(folder), createLog('silent'))).close()
      return readFileSync(join(folder, SQLITE_FILE))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })()
  return pendingTemplate
}

export function sqliteConfig(dataDir: string): StorageConfig {
  return {
    dataDir,
    database: { engine: 'sqlite', file: join(dataDir, SQLITE_FILE) },
    events: { kind: 'in-process' },
    secrets: [TEST_SECRET],
    autoMigrate: true,
  }
}

export function postgresConfig(url: string): StorageConfig {
  return {
    dataDir: tmpdir(),
    database: { engine: 'postgres', url },
    events: { kind: 'postgres', url },
    secrets: [TEST_SECRET],
    autoMigrate: true,
  }
}
