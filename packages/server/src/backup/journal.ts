import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type Instant, toRfc3339 } from '../clock.ts'
import { makeFolder } from '../folders.ts'
import { newId } from '../ids.ts'
import { type FileSecrets, withMac } from './authentication.ts'
import type { JournalEntry } from './journal-entry.ts'
import { AUTHENTICATED_SUFFIX, chained, MAX_LINE_LENGTH } from './journal-reader.ts'

export interface Journal {
  /** Resolves once the entries are on disk. Concurrent calls share one write. */
  append(entries: readonly JournalEntry[]): Promise<void>
  close(): Promise<void>
}

export interface JournalDeps {
  clock: Clock
  secrets: FileSecrets
  /** The id of this installation, in the first line of every file. */
  instance: string
}

/**
 * How many other files, the newest by name, a new file lists with their lengths. Bounds the work at its creation and
 * the length of its first line.
 */
const MAX_BESIDE = 64

/**
 * Appends to a file of this process, a new one each day. The folder is created with mode 0700. Each line has a MAC
 * over itself and the previous MAC, and the first line names the file, the service, and the lengths of other files:
 * without the secret nothing can be added, changed, moved or removed.
 */
export async function openJournal(
  folder: string,
  { clock, secrets, instance }: JournalDeps,
): Promise<Journal> {
  makeFolder(folder)
  let day = ''
  let file: FileHandle | null = null
  let lastMac = ''
  let waiting: JournalEntry[] = []
  let writing: Promise<void> = Promise.resolve()
  let next: Promise<void> | null = null
  // The first file records when the journal began, so that a restore can check that it covers the time since the
  // backup.
  if (!(await readdir(folder)).some(name => name.endsWith(AUTHENTICATED_SUFFIX))) await fileOfToday()

  return {
    append(entries) {
      if (entries.length === 0) return Promise.resolve()
      // A call has not room for a hundred thousand arguments.
      for (const entry of entries) waiting.push(entry)
      next ??= writing = writing.catch(() => {}).then(write)
      return next
    },
    async close() {
      await writing.catch(() => {})
      await endFile(clock.now())
    },
  }

  async function write(): Promise<void> {
    next = null
    const entries = waiting
    waiting = []
    try {
      const handle = await fileOfToday()
      await handle.appendFile(entries.map(lineOf).join(''))
      await handle.datasync()
    } catch (error) {
      // A full disk may have left an incomplete line, which is skipped only at the end of a file: continue in a new
      // one.
      await leaveFile().catch(() => {})
      throw error
    }
  }

  async function fileOfToday(): Promise<FileHandle> {
    const now = clock.now()
    const today = toRfc3339(now).slice(0, 10)
    if (file && today === day) return file
    await endFile(now)
    const beside = await filesBeside(folder)
    const name = `${today}-${newId(now).slice(-12)}${AUTHENTICATED_SUFFIX}`
    file = await open(join(folder, name), 'ax', 0o600)
    lastMac = ''
    await file.appendFile(lineOf({ type: 'opened', at: now, instance, file: name, beside }))
    day = today
    return file
  }

  /**
   * Marks the file as complete. Without it the file is still read, and a restore warns that entries may be missing.
   */
  async function endFile(now: Instant): Promise<void> {
    const ended = file
    try {
      await ended?.appendFile(lineOf({ type: 'closed', at: now }))
      await ended?.datasync()
    } finally {
      await leaveFile()
    }
  }

  async function leaveFile(): Promise<void> {
    const left = file
    file = null
    await left?.close()
  }

  function lineOf(entry: JournalEntry): string {
    const text = JSON.stringify(entry)
    lastMac = secrets.mac('journal', chained(lastMac, text))
    return `${withMac(text, lastMac)}\n`
  }
}

/** The newest files with the length of their complete lines, so that later truncation or removal is detected. */
async function filesBeside(folder: string): Promise<{ file: string; bytes: number }[]> {
  const names = (await readdir(folder)).filter(name => name.endsWith(AUTHENTICATED_SUFFIX))
  const newest = names.sort().slice(-MAX_BESIDE)
  return Promise.all(newest.map(async file => ({ file, bytes: await wholeBytes(join(folder, file)) })))
}

/** Length up to the last line feed; searching the last MAX_LINE_LENGTH bytes is enough. */
async function wholeBytes(path: string): Promise<number> {
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
