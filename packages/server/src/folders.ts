import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder and those above it, each with mode 0700; what is there already keeps what its owner chose.
 *
 * Not by Node's own `recursive`, which never ends where the system says of a folder that is there that it is not,
 * as below /proc.
 */
export function makeFolder(path: string): void {
  if (isFolder(path)) return
  makeFolder(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && isFolder(path)) return
    throw error
  }
  chmodSync(path, 0o700) // the umask cuts what mkdir is told
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

const REASONS: Record<string, string> = {
  EACCES: 'this user may not write there',
  EDQUOT: "this user's share of the disk is full",
  EEXIST: 'a file stands where a folder is needed',
  ENOENT: 'no folder can be made there',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a file stands where a folder is needed',
  EPERM: 'this user may not write there',
  EROFS: 'the file system is read-only',
}

/** Why a folder or a file cannot be made or written, in words. */
export function whyNotWritable(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return REASONS[code] ? `${REASONS[code]} (${code})` : message
}
