import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder and its parents with mode 0700. Existing ones keep their mode.
 *
 * Does not use Node's `recursive`, which loops forever where an existing folder is reported as missing, as below
 * /proc.
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
  chmodSync(path, 0o700) // mkdir's mode is reduced by the umask
}

const OWNER_ONLY = 0o600
const GROUP_AND_OTHERS = 0o077

/** Creates an empty file with mode 0600, regardless of the umask; removes others' permissions from an existing one. */
export function makePrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY))
    chmodSync(path, OWNER_ONLY)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    restrictToOwner(path)
  }
}

/** Removes the permissions of group and others, if the file exists and this user may change them. */
export function restrictToOwner(path: string): void {
  if (!isOpenToOthers(path)) return
  try {
    chmodSync(path, OWNER_ONLY)
  } catch {
    // Ignored: the file is another user's or the disk is read-only, which `doctor` reports.
  }
}

/** Whether group or others have any permission. */
export function isOpenToOthers(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & GROUP_AND_OTHERS) !== 0
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

const REASONS: Record<string, string> = {
  EACCES: 'this user may not write there',
  EDQUOT: "this user's share of the disk is full",
  EEXIST: 'a file is in the place of a folder',
  ENOENT: 'no folder can be made there',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a file is in the place of a folder',
  EPERM: 'this user may not write there',
  EROFS: 'the file system is read-only',
}

/** A readable reason why a folder or file cannot be created or written. */
export function whyNotWritable(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return REASONS[code] ? `${REASONS[code]} (${code})` : message
}
