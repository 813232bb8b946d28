import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeFolder, makePrivateFile } from '../folders.ts'
import { CannotStart } from '../operator-error.ts'
import { isBusy, toStartError } from './sqlite-errors.ts'

/** How long to wait for the lock: longer than a concurrent `isDataDirHeld` takes to read the file. */
const LOCK_TIMEOUT_MS = 100

/**
 * Locks the data directory for the one process that serves it, until the lock is disposed of or the process ends.
 *
 * @throws CannotStart if another process serves the directory, or the directory is not writable; KeywayError
 * `unavailable` if the disk is full
 */
export function holdDataDir(dataDir: string): Disposable {
  const release = lockDataDir(dataDir)
  if (!release) {
    throw new CannotStart(
      `Another "keyway serve" runs on the data directory ${dataDir}. Stop it, or set KEYWAY_DATA_DIR to another folder.`,
    )
  }
  return { [Symbol.dispose]: release }
}

/** Like `holdDataDir`, but returns the function that unlocks the directory, or null if another process has the lock. */
export function lockDataDir(dataDir: string): (() => void) | null {
  const file = lockFileOf(dataDir)
  let lock: DatabaseSync | undefined
  try {
    makeFolder(dataDir)
    makePrivateFile(file)
    lock = new DatabaseSync(file, { timeout: LOCK_TIMEOUT_MS })
    lock.exec('begin exclusive')
  } catch (error) {
    lock?.close()
    if (isBusy(error)) return null
    throw toStartError(file, error)
  }
  return () => lock.close()
}

/** Whether a process holds this data directory's lock. Creates no file, and keeps no lock. */
export function isDataDirHeld(dataDir: string): boolean {
  let probe: DatabaseSync | undefined
  try {
    probe = new DatabaseSync(lockFileOf(dataDir), { readOnly: true, timeout: 0 })
    probe.exec('select 1 from sqlite_schema')
    return false
  } catch (error) {
    return isBusy(error)
  } finally {
    probe?.close()
  }
}

function lockFileOf(dataDir: string): string {
  return join(dataDir, 'serve.lock')
}
