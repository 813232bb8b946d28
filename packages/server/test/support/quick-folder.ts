import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/**
 * The variable that names a folder for test databases. A program that may kill the tests that it runs sets this, and
 * removes the folder after them.
 */
export const TEST_FOLDER_VARIABLE = 'KEYWAY_TEST_FOLDER'

const MEMORY_FOLDER = '/dev/shm'
/** Free space needed: several times that of the few dozen databases of 8 MB that a run has at a time. */
const REQUIRED_FREE_BYTES = 2 * 1024 ** 3

/**
 * The folder for test databases: the one that `TEST_FOLDER_VARIABLE` names, else one in memory if enough of it is free,
 * else the system's folder for temporary files. Copying a PostgreSQL database takes 45 ms in memory, 220 ms on a disk,
 * and SQLite commits need not wait for the disk. Durability across a process crash is the same.
 */
export function quickFolder(): string {
  const givenFolder = process.env[TEST_FOLDER_VARIABLE]
  if (givenFolder) return givenFolder
  if (!existsSync(MEMORY_FOLDER)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize > REQUIRED_FREE_BYTES ? MEMORY_FOLDER : tmpdir()
}
