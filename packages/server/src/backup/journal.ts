import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type Instant, toRfc3339 } from '../clock.ts'
import { makeFolder } from '../folders.ts'
import { newId } from '../ids.ts'
import { type FileSecrets, withMac } from './authentication.ts'
import type { JournalEntry } from './journal-entry.ts'
import { AUTHENTICATED_SUFFIX, MAX_LINE_LENGTH, textForMac } from './journal-reader.ts'

export interface Journal {
  /** Resolves once the entries are on disk; rejects if they cannot be written. Concurrent calls share one write. */
  append(entries: readonly JournalEntry[]): Promise<void>
  close(): Promise<void>
}

export interface JournalDeps {
  clock: Clock
  secrets: FileSecrets
  /** The id of this service, which the first line of every file has. */
  serviceId: string
}

/**
 * Maximum number of other files, the newest by name, that the first line of a new file lists with their lengths. Bounds
 * the work at the file's creation, and the length of that line.
 */
const MAX_LISTED_FILES = 64

/**
 * Appends to a file that only this process writes, a new one each day and after a failed write. A missing folder is
 * created with mode 0700. Each line has a MAC over itself and the previous MAC, and the first line names the file, the
 * service, and the lengths of other files: without the secret nothing can be added, changed or moved unnoticed, nor can
 * anything be removed that a later file lists.
 */
export async function openJournal(
  folder: string,
  { clock, secrets, serviceId }: JournalDeps,
): Promise<Journal> {
  makeFolder(folder)
  /** The day of `file`. */
  let day = ''
  let file: FileHandle | null = null
  let lastMac = ''
  let queuedEntries: JournalEntry[] = []
  let lastWrite: Promise<void> = Promise.resolve()
  /** The write of `queuedEntries`, until it begins. */
  let nextWrite: Promise<void> | null = null
  // The first file records when the journal began, so that a restore can check that it covers the time since the
  // backup.
  if (!(await readdir(folder)).some(name => name.endsWith(AUTHENTICATED_SUFFIX))) await fileOfToday()

  return {
    append(entries) {
      if (entries.length === 0) return Promise.resolve()
      // Not push(...entries): a call cannot have a hundred thousand arguments.
      for (const entry of entries) queuedEntries.push(entry)
      nextWrite ??= lastWrite = lastWrite.catch(() => {}).then(write)
      return nextWrite
    },
    async close() {
      await lastWrite.catch(() => {})
      await completeFile(clock.now())
    },
  }

  async function write(): Promise<void> {
    nextWrite = null
    const entries = queuedEntries
    queuedEntries = []
    try {
      const handle = await fileOfToday()
      await handle.appendFile(entries.map(lineOf).join(''))
      await handle.datasync()
    } catch (error) {
      // A full disk may have left an incomplete line. Readers skip such a line only at the end of a file, so the next
      // entries are written to a new file.
      await closeFile().catch(() => {})
      throw error
    }
  }

  async function fileOfToday(): Promise<FileHandle> {
    const now = clock.now()
    const today = toRfc3339(now).slice(0, 10)
    if (file && today === day) return file
    await completeFile(now)
    const beside = await listOtherFiles(folder)
    const name = `${today}-${newId(now).slice(-12)}${AUTHENTICATED_SUFFIX}`
    file = await open(join(folder, name), 'ax', 0o600)
    lastMac = ''
    await file.appendFile(lineOf({ type: 'opened', at: now, instance: serviceId, file: name, beside }))
    day = today
    return file
  }

  /**
   * Marks the file as complete, and closes it. A file without this mark is still read, and a restore warns that entries
   * may be missing.
   */
  async function completeFile(now: Instant): Promise<void> {
    const handle = file
    try {
      await handle?.appendFile(lineOf({ type: 'closed', at: now }))
      await handle?.datasync()
    } finally {
      await closeFile()
    }
  }

  async function closeFile(): Promise<void> {
    const handle = file
    file = null
    await handle?.close()
  }

  function lineOf(entry: JournalEntry): string {
    const text = JSON.stringify(entry)
    lastMac = secrets.mac('journal', textForMac(lastMac, text))
    return `${withMac(text, lastMac)}\n`
  }
}

/** The newest files, each with the length of its complete lines, so that later truncation or removal is detected. */
async function listOtherFiles(folder: string): Promise<{ file: string; bytes: number }[]> {
  const names = (await readdir(folder)).filter(name => name.endsWith(AUTHENTICATED_SUFFIX))
  const newestFiles = names.sort().slice(-MAX_LISTED_FILES)
  return Promise.all(
    newestFiles.map(async file => ({ file, bytes: await completeLength(join(folder, file)) })),
  )
}

/** The file's length up to its last line feed, which must be in its last MAX_LINE_LENGTH bytes. */
async function completeLength(path: string): Promise<number> {
  const handle = await open(path, 'r')
  try {
    const { size } = await handle.stat()
    const tail = Buffer.alloc(Math.min(size, MAX_LINE_LENGTH))
    const { bytesRead } = await handle.read(tail, 0, tail.length, size - tail.length)
    return size - tail.length + tail.subarray(0, bytesRead).lastIndexOf('\n') + 1
  } finally {
    await handle.close()
  }
}
