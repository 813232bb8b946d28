import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createLog } from '../../src/log.ts'
import { createStorage } from '../../src/storage/database.ts'
import { sqliteConfig } from '../support/engines.ts'
import { temporaryFolder } from '../support/serve.ts'

/** The content of an empty, migrated database. */
export async function migratedDatabase(): Promise<Uint8Array> {
  const folder = temporaryFolder()
  try {
    await (await createStorage(sqliteConfig(folder.path), createLog('silent'))).close()
    const database = new DatabaseSync(join(folder.path, 'keyway.db'))
    // The image is opened in memory, where SQLite has no write-ahead log.
    database.exec('pragma journal_mode = delete')
    const image = database.serialize()
    database.close()
    return image
  } finally {
    rmSync(folder.path, { recursive: true, force: true })
  }
}
