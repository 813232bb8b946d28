import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs'
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

const OWNER_ONLY = 0o600
const GROUP_AND_OTHERS = 0o077

/** Makes an empty file with mode 0600, whatever the umask; one that is there is withdrawn from everybody else. */
export function makePrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY))
    chmodSync(path, OWNER_ONLY)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    withdrawFromOthers(path)
  }
}

/** Takes the rights of group and others from a file, where there is one and this user may. */
export function withdrawFromOthers(path: string): void {
  if (!isOpenToOthers(path)) return
  try {
    chmodSync(path, OWNER_ONLY)
  } catch {
    // Another user's file, or a disk that cannot be written: `doctor` names it.
  }
}

/** Whether group or others have any right to it. */
export function isOpenToOthers(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & GROUP_AND_OTHERS) !== 0
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
