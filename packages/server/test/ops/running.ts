import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { loadOrCreateSecret } from '../../src/config/keyway-secret.ts'
import { loadConfig } from '../../src/config.ts'
import { type RunningServer, type ServerOptions, startServer } from '../../src/server.ts'
import { writeMigratedSqlite } from '../support/engines.ts'
import { quickFolder } from '../support/quick-folder.ts'

/** Starts the whole service in this process on an empty database, composed as by `npm start`. */
export async function startKeyway(
  t: TestContext,
  settings: Record<string, string> = {},
  options: ServerOptions = {},
): Promise<RunningServer> {
  const folder = mkdtempSync(join(quickFolder(), 'keyway-ops-'))
  const environment = {
    KEYWAY_PORT: '0',
    KEYWAY_DATA_DIR: folder,
    KEYWAY_LOG_LEVEL: 'silent',
    ...settings,
  }
  const config = loadOrCreateSecret(loadConfig(environment))
  if (config.database.engine === 'sqlite') await writeMigratedSqlite(config.dataDir)
  const server = await startServer(config, {
    announce: () => {},
    ...options,
  })
  t.after(async () => {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return server
}
