import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, type Instant, toRfc3339 } from '../clock.ts'
import { makeFolder } from '../folders.ts'
import { newId } from '../ids.ts'
import { type FileSecrets, withMac } from './authentication.ts'
import type { JournalEntry } from './journal-entry.ts'
import { AUTHENTICATED_SUFFIX, chained, MAX_LINE_LENGTH } from './journal-reader.ts'

export interface Journal {
  /** Resolves once the entries are on the disk. Those of many callers share one write. */
  append(entries: readonly JournalEntry[]): Promise<void>
  close(): Promise<void>
}

export interface JournalDeps {
  clock: Clock
  secrets: FileSecrets
  /** The service whose journal it is; every file begins with it. */
  instance: string
}

/**
 * How many files a new one vouches for, the newest by name. It bounds the work at the beginning of a file and the
 * length of its first line.
 */
const MAX_BESIDE = 64

/**
 * Appends to a file of this process's own, a new one each day. The folder is made with mode 0700. Each line carries a
 * MAC over itself and the line before it, and the first line of a file names the file, the service, and how long the
 * files beside it were: nothing can be added, changed, moved or taken out of the middle without the secret.
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
  // A journal says when it began, so that a restore can tell whether it knows everything since the backup.
  if (!(await readdir(folder)).some(name => name.endsWith(AUTHENTICATED_SUFFIX))) await fileOfToday()

  return {
    append(entries) {
      if (entries.length === 0) return Promise.resolve()
      waiting.push(...entries)
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
      // A full disk may have taken half a line. As the last one of its file it is passed over, so begin another.
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

  /** Says that nothing follows. Without it the file still counts; a restore then says that its end is open. */
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

/** The newest files that are there, each with the bytes of its whole lines, so that none can be cut or taken away later. */
async function filesBeside(folder: string): Promise<{ file: string; bytes: number }[]> {
  const names = (await readdir(folder)).filter(name => name.endsWith(AUTHENTICATED_SUFFIX))
  const newest = names.sort().slice(-MAX_BESIDE)
  return Promise.all(newest.map(async file => ({ file, bytes: await wholeBytes(join(folder, file)) })))
}

/** Up to the last line feed, which is looked for at the end only: no line is longer than that. */
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
