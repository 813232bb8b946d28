import { type Backup, createBackup } from '../backup/backup.ts'
import { createRestore, type Restore } from '../backup/restore.ts'
import { createClock } from '../clock.ts'
import type { Config } from '../config.ts'
import { createLog } from '../log.ts'
import { OperatorError } from '../operator-error.ts'
import { createSecrets } from '../secrets.ts'
import { createBackupStore } from '../storage/backup.ts'
import { createStorage } from '../storage/database.ts'
import { VERSION } from '../version.ts'

const PROGRESS_INTERVAL_MS = 2000

/**
 * Runs `work` with the backup operations on the configured database.
 *
 * @throws OperatorError for a file-system error that the operator can fix; any other error of `work` as it is
 */
export async function withBackups<Outcome>(
  config: Config,
  file: string,
  work: (backups: { backup: Backup; restore: Restore }) => Promise<Outcome>,
): Promise<Outcome> {
  const storage = await createStorage(config, createLog('silent'))
  const clock = createClock()
  try {
    await clock.synchronize(() => storage.readClock())
    const store = createBackupStore(storage.engine)
    const secrets = createSecrets(config.secrets)
    const openPepper = (sealed: string) => secrets.open('address-pepper', sealed, 'address-pepper')
    const progress = printProgress()
    const backup = createBackup({ store, version: VERSION, secrets, openPepper, progress })
    const restore = createRestore({ store, clock, secrets, progress })
    return await work({ backup, restore })
  } catch (error) {
    throw fileError(error, file) ?? error
  } finally {
    await storage.close()
  }
}

const FILE_ERRORS = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM', 'EROFS', 'ENOSPC'])

function fileError(error: unknown, file: string): OperatorError | null {
  const { code = '' } = error as NodeJS.ErrnoException
  if (!FILE_ERRORS.has(code)) return null
  return new OperatorError(
    `${file} cannot be read or written (${code}). Check its name, its folder and its permissions.`,
  )
}

/** Prints progress at intervals on standard error, since standard output is for the result. */
export function printProgress(noun = 'rows'): (rows: number) => void {
  let printedAt = performance.now()
  return rows => {
    if (performance.now() - printedAt < PROGRESS_INTERVAL_MS) return
    printedAt = performance.now()
    console.error(`${rows} ${noun} …`)
  }
}

export function countsText(counts: Record<string, number>): string {
  const mainCounts = ['users', 'api_keys', 'ledger_entries', 'apps'].map(
    table => `${counts[table] ?? 0} ${table.replace('_', ' ')}`,
  )
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  return `${mainCounts.join(', ')} (${total} rows in all)`
}
