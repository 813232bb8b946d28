import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { loadOrCreateSecret } from '../../src/config/keyway-secret.ts'
import { loadConfig } from '../../src/config.ts'
import { type RunningServer, type ServerOptions, startServer } from '../../src/server.ts'

/** Starts the whole service in this process with a new data folder, composed as by `npm start`. */
export async function startKeyway(
  t: TestContext,
  settings: Record<string, string> = {},
  options: ServerOptions = {},
): Promise<RunningServer> {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-ops-'))
  const environment = {
    KEYWAY_PORT: '0',
    KEYWAY_DATA_DIR: folder,
    KEYWAY_LOG_LEVEL: 'silent',
    ...settings,
  }
  const server = await startServer(loadOrCreateSecret(loadConfig(environment)), {
    announce: () => {},
    ...options,
  })
  t.after(async () => {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return server
}
