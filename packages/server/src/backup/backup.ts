import { access } from 'node:fs/promises'
import type { Instant } from '../clock.ts'
import { BACKUP_FORMAT, type BackupHeader, BackupRefused, counted, writeBackup } from './backup-file.ts'
import type { BackupStore } from './backup-store.ts'

export interface BackupReport {
  file: string
  createdAt: Instant
  counts: Record<string, number>
}

export interface BackupDeps {
  store: BackupStore
  version: string
  /** Of the secret that seals. */
  fingerprint: string
  /** Told now and then how many rows are done. */
  progress?: (rows: number) => void
}

/** Writes one file, consistent while others write. @throws BackupRefused when the file is there already */
export type Backup = (file: string) => Promise<BackupReport>

export function createBackup({ store, version, fingerprint, progress }: BackupDeps): Backup {
  return async file => {
    await refuseExisting(file)
    await refuseExisting(`${file}.partial`)
    const migrations = await store.migrations()
    return store.read(async (rows, at) => {
      const header: BackupHeader = {
        keyway_backup: BACKUP_FORMAT,
        created_at: at,
        version,
        migrations,
        secret_fingerprint: fingerprint,
      }
      const counts = await writeBackup(file, header, counted(rows, progress))
      return { file, createdAt: at, counts }
    })
  }
}

async function refuseExisting(file: string): Promise<void> {
  const exists = await access(file).then(
    () => true,
    () => false,
  )
  if (exists) throw new BackupRefused(`${file} is there already and is not overwritten. Give another name.`)
}
