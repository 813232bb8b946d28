import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** Where a caller removes what its tests leave, which it may kill. */
export const TEST_FOLDER_VARIABLE = 'KEYWAY_TEST_FOLDER'

const MEMORY_FOLDER = '/dev/shm'
/** A run holds a few dozen databases of 8 MB at a time. */
const ROOM_NEEDED = 2 * 1024 ** 3

/**
 * Where databases of tests lie: in memory where there is enough of it. A PostgreSQL database is copied there in 45 ms,
 * and in 220 ms on a disk; a SQLite commit, which waits for the disk as in service, waits for nothing. What survives
 * the death of a process does not depend on it.
 */
export function quickFolder(): string {
  const given = process.env[TEST_FOLDER_VARIABLE]
  if (given) return given
  if (!existsSync(MEMORY_FOLDER)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize > ROOM_NEEDED ? MEMORY_FOLDER : tmpdir()
}
