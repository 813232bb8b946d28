import { access } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Instant } from '../clock.ts'
import { OperatorError } from '../operator-error.ts'
import type { FileSecrets } from './authentication.ts'
import { BACKUP_FORMAT, type BackupHeader, withProgress, writeBackup } from './backup-file.ts'
import type { BackupStore } from './backup-store.ts'
import { serviceIdOf } from './journal-entry.ts'

export interface BackupReport {
  file: string
  createdAt: Instant
  /** The number of rows, by table. */
  counts: Record<string, number>
}

export interface BackupDeps {
  store: BackupStore
  version: string
  secrets: FileSecrets
  /** Decrypts the address pepper, from which the service's id is derived. @throws SealError */
  openPepper(sealed: string): Buffer
  /** Called after every 1000 rows, with the number of rows read so far. */
  progress?: (rows: number) => void
}

/**
 * Writes a consistent backup while the service runs.
 *
 * @throws OperatorError if the file or its temporary file (`.partial`) exists; SealError if no secret opens the pepper
 */
export type Backup = (file: string) => Promise<BackupReport>

export function createBackup({ store, version, secrets, openPepper, progress }: BackupDeps): Backup {
  return async file => {
    await refuseExisting(file)
    await refuseExisting(`${file}.partial`)
    const migrations = await store.migrations()
    const pepper = await store.sealedPepper()
    return store.read(async (rows, at) => {
      const header: BackupHeader = {
        keyway_backup: BACKUP_FORMAT,
        file: basename(file),
        service: pepper === null ? null : serviceIdOf(openPepper(pepper)),
        created_at: at,
        version,
        migrations,
        secret_fingerprint: secrets.fingerprint,
      }
      const counts = await writeBackup(file, header, withProgress(rows, progress), secrets)
      return { file, createdAt: at, counts }
    })
  }
}

async function refuseExisting(file: string): Promise<void> {
  const exists = await access(file).then(
    () => true,
    () => false,
  )
  if (exists) throw new OperatorError(`${file} exists and is not overwritten. Choose another name.`)
}
