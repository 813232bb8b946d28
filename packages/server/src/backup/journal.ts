import { type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, toRfc3339 } from '../clock.ts'
import { makeFolder } from '../folders.ts'
import { newId } from '../ids.ts'
import type { JournalEntry } from './journal-entry.ts'
import { JOURNAL_SUFFIX } from './journal-reader.ts'

export interface Journal {
  /** Resolves once the entries are on the disk. Those of many callers share one write. */
  append(entries: readonly JournalEntry[]): Promise<void>
  close(): Promise<void>
}

/**
 * Appends to a file of this process's own, a new one each day. The folder is made with mode 0700.
 *
 * @param instance whose journal it is; every file begins with it
 */
export async function openJournal(folder: string, clock: Clock, instance: string): Promise<Journal> {
  makeFolder(folder)
  let day = ''
  let file: FileHandle | null = null
  let waiting: string[] = []
  let writing: Promise<void> = Promise.resolve()
  let next: Promise<void> | null = null
  // A journal says when it began, so that a restore can tell whether it knows everything since the backup.
  if (!(await readdir(folder)).some(name => name.endsWith(JOURNAL_SUFFIX))) await fileOfToday()

  return {
    append(entries) {
      if (entries.length === 0) return Promise.resolve()
      waiting.push(...entries.map(lineOf))
      next ??= writing = writing.catch(() => {}).then(write)
      return next
    },
    async close() {
      await writing.catch(() => {})
      await leaveFile()
    },
  }

  async function write(): Promise<void> {
    next = null
    const texts = waiting
    waiting = []
    try {
      const handle = await fileOfToday()
      await handle.appendFile(texts.join(''))
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
    await leaveFile()
    const name = `${today}-${newId(now).slice(-12)}${JOURNAL_SUFFIX}`
    file = await open(join(folder, name), 'a', 0o600)
    await file.appendFile(lineOf({ type: 'opened', at: now, instance }))
    day = today
    return file
  }

  async function leaveFile(): Promise<void> {
    const left = file
    file = null
    await left?.close()
  }
}

function lineOf(entry: JournalEntry): string {
  return `${JSON.stringify(entry)}\n`
}
