import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type JournalEntry, parseEntry } from './journal-entry.ts'
import { wholeLines } from './lines.ts'

export const JOURNAL_SUFFIX = '.ndjson'

/** The journal is not there, not readable or not what was written; the message is one sentence with what to do. */
export class JournalDamaged extends Error {
  override readonly name = 'JournalDamaged'
}

export interface JournalLine {
  file: string
  entry: JournalEntry
}

/**
 * Every entry of these files, one after the other, never more than a piece of one in memory. A last line that a
 * crash cut is left out: nobody was answered for it. @throws JournalDamaged
 */
export async function* readJournalLines(files: readonly string[]): AsyncGenerator<JournalLine> {
  for (const file of files) {
    let number = 0
    try {
      for await (const line of wholeLines(createReadStream(file, 'utf8'))) {
        number++
        yield { file, entry: entryOf(line, `Line ${number} of ${file}`) }
      }
    } catch (error) {
      throw unreadable(error, file)
    }
  }
}

/** All of it, oldest first. @throws JournalDamaged */
export async function readJournal(folder: string): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = []
  for await (const { entry } of readJournalLines(await journalFiles(folder))) entries.push(entry)
  return entries.sort((a, b) => a.at - b.at)
}

/** Its files as they are now. @throws JournalDamaged where there is none */
export async function journalFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(error => {
    throw unreadable(error, folder)
  })
  const files = names
    .filter(name => name.endsWith(JOURNAL_SUFFIX))
    .sort()
    .map(name => join(folder, name))
  if (files.length > 0) return files
  throw new JournalDamaged(`There is no journal in ${folder}. ${WHICH_FOLDER}`)
}

const WHICH_FOLDER = 'Give the folder that KEYWAY_JOURNAL_DIR named when it was written.'

function entryOf(line: string, place: string): JournalEntry {
  const entry = parseEntry(line)
  if (!('wrong' in entry)) return entry
  throw new JournalDamaged(
    `${place} ${entry.wrong}. Nothing was changed. If the line is past mending, take it out and run this again; what it told of is lost.`,
  )
}

function unreadable(error: unknown, place: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall === undefined) return error
  return new JournalDamaged(`The journal at ${place} cannot be read (${code}). ${WHICH_FOLDER}`)
}
