import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeFolder, makePrivateFile } from '../folders.ts'
import { CannotStart } from './cannot-start.ts'
import { isBusy, toStartError } from './sqlite-errors.ts'

/**
 * Keeps this data directory for the one process that serves it, until it is disposed of or the process ends.
 *
 * @throws CannotStart where another process serves it, or nothing can be written
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

/**
 * The same until the returned function is called; null when another process has it.
 *
 * @throws CannotStart where nothing can be written
 */
export function lockDataDir(dataDir: string): (() => void) | null {
  const file = join(dataDir, 'serve.lock')
  let lock: DatabaseSync | undefined
  try {
    makeFolder(dataDir)
    makePrivateFile(file)
    lock = new DatabaseSync(file, { timeout: 0 })
    lock.exec('begin exclusive')
  } catch (error) {
    lock?.close()
    if (isBusy(error)) return null
    throw toStartError(file, error)
  }
  return () => lock.close()
}
