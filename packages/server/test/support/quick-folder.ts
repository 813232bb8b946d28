import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** A folder that the caller removes after the tests, for callers that may kill them. */
export const TEST_FOLDER_VARIABLE = 'KEYWAY_TEST_FOLDER'

const MEMORY_FOLDER = '/dev/shm'
/** Free space needed: a run has a few dozen databases of 8 MB at a time. */
const ROOM_NEEDED = 2 * 1024 ** 3

/**
 * The folder for test databases: in memory if there is enough of it. Copying a PostgreSQL database takes 45 ms there
 * and 220 ms on a disk, and SQLite commits need not wait for the disk. Durability across a process crash is the same.
 */
export function quickFolder(): string {
  const given = process.env[TEST_FOLDER_VARIABLE]
  if (given) return given
  if (!existsSync(MEMORY_FOLDER)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize > ROOM_NEEDED ? MEMORY_FOLDER : tmpdir()
}
