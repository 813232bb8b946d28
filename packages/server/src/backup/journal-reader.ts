import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { LineTooLong, wholeLines } from '../lines.ts'
import { OperatorError } from '../operator-error.ts'
import { foreignSecret, splitMac, type Trust, UNAUTHENTICATED_MEANS } from './authentication.ts'
import { type EntryOf, type JournalEntry, parseEntry } from './journal-entry.ts'

/**
 * Older versions, which wrote no MACs, also read files with AUTHENTICATED_SUFFIX by this suffix, and refuse their
 * lines.
 */
const JOURNAL_SUFFIX = '.ndjson'
/** Files whose lines have MACs; see `openJournal`. */
export const AUTHENTICATED_SUFFIX = '.v2.ndjson'
/**
 * The longest line is the first, which lists 64 files; the entry of a key with all its networks takes a tenth of
 * this.
 */
export const MAX_LINE_LENGTH = 64 * 1024

export interface JournalLine {
  file: string
  entry: JournalEntry
  /** Byte offset of the next line. */
  end: number
}

/** The text that a line's MAC covers: the line and the previous MAC, and thereby all preceding lines. */
export function chained(previousMac: string, text: string): string {
  return `${previousMac}\n${text}`
}

/**
 * Every entry of these files in order, with at most one line and one chunk in memory; each is verified before it is
 * returned. A last line without a line feed, as after a crash, is skipped: no request was answered before its line
 * was complete.
 *
 * @throws OperatorError
 */
export async function* readJournalLines(files: readonly string[], trust: Trust): AsyncGenerator<JournalLine> {
  for (const file of files) {
    let number = 0
    let end = 0
    const read = file.endsWith(AUTHENTICATED_SUFFIX)
      ? authenticatedReader(file, trust)
      : plainReader(file, trust)
    try {
      for await (const line of wholeLines(createReadStream(file, 'utf8'), MAX_LINE_LENGTH)) {
        number++
        end += Buffer.byteLength(line) + 1
        yield { file, entry: entryOf(read(line, number), `Line ${number} of ${file}`), end }
      }
    } catch (error) {
      if (error instanceof LineTooLong) throw damaged(`Line ${number + 1} of ${file}`, 'is too long')
      throw unreadable(error, file)
    }
  }
}

type LineReader = (line: string, number: number) => JournalEntry | { wrong: string }

function authenticatedReader(file: string, { secrets }: Trust): LineReader {
  let previousMac = ''
  return (line, number) => {
    const signed = splitMac(line)
    if (!signed) return { wrong: 'has no MAC' }
    const foreign = foreignSecret(signed.mac, secrets)
    if (foreign) return { wrong: foreign }
    if (!secrets.verifyMac('journal', chained(previousMac, signed.text), signed.mac))
      return {
        wrong: 'has a wrong MAC: it was modified or moved, or lines before it are missing',
      }
    previousMac = signed.mac
    const entry = parseEntry(signed.text)
    if ('wrong' in entry || number > 1) return entry
    if (entry.type !== 'opened') return { wrong: 'is not the beginning of a file' }
    if (entry.file !== basename(file))
      return { wrong: `belongs to the file ${JSON.stringify(entry.file)}, which has another name here` }
    return entry
  }
}

function plainReader(file: string, { unauthenticated }: Trust): LineReader {
  if (!unauthenticated)
    throw new OperatorError(
      `${file} is of an older version and not authenticated. Nothing was changed. ${UNAUTHENTICATED_MEANS} Or remove it from the folder, if it is not needed.`,
    )
  return parseEntry
}

/** The journal's current files, sorted by name. @throws OperatorError if there is none */
export async function journalFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(error => {
    throw unreadable(error, folder)
  })
  const files = names
    .filter(name => name.endsWith(JOURNAL_SUFFIX))
    .sort()
    .map(name => join(folder, name))
  if (files.length > 0) return files
  throw new OperatorError(`There is no journal in ${folder}. ${WHICH_FOLDER}`)
}

/** The day of a file's entries, as `2026-11-22`, from its name; authenticated files repeat the name inside. */
export function dayOf(file: string): string {
  return basename(file).slice(0, 10)
}

export function isAuthenticated(file: string): boolean {
  return file.endsWith(AUTHENTICATED_SUFFIX)
}

const WHICH_FOLDER = 'Use the folder that KEYWAY_JOURNAL_DIR named when the journal was written.'

function entryOf(entry: JournalEntry | { wrong: string }, place: string): JournalEntry {
  if (!('wrong' in entry)) return entry
  throw damaged(place, entry.wrong)
}

function damaged(place: string, wrong: string): OperatorError {
  return new OperatorError(
    `${place} ${wrong}. Nothing was changed. If the file cannot be recovered, truncate it before that line and run this again with --unauthenticated; later entries are lost.`,
  )
}

function unreadable(error: unknown, place: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall === undefined) return error
  return new OperatorError(`The journal at ${place} cannot be read (${code}). ${WHICH_FOLDER}`)
}

/** Compares the present files with the lists in the first lines of other files. */
export interface Completeness {
  note(line: JournalLine): void
  /**
   * @param neededSince the day from which on no file may be missing
   * @returns which file is missing or truncated, or null
   */
  whatIsMissing(neededSince: string): string | null
  /** Files without a `closed` entry, with the time of their last entry. */
  openEnds(): { file: string; at: number }[]
}

/** Later files record the lengths of earlier ones; the end of the newest is only confirmed by its `closed` entry. */
export function createCompleteness(): Completeness {
  const ends = new Map<string, { bytes: number; at: number; closed: boolean }>()
  const expected = new Map<string, { bytes: number; by: string }>()

  return {
    note({ file, entry, end }) {
      if (!isAuthenticated(file)) return
      ends.set(basename(file), { bytes: end, at: entry.at, closed: entry.type === 'closed' })
      if (entry.type === 'opened') expectBeside(entry)
    },
    whatIsMissing(neededSince) {
      for (const [name, { bytes, by }] of expected) {
        const there = ends.get(name)
        if (!there && dayOf(name) >= neededSince) return `${name} is missing, which ${by} lists`
        if (there && there.bytes < bytes)
          return `${name} is truncated: it has ${there.bytes} bytes of complete lines, and had ${bytes} when ${by} was created`
      }
      return null
    },
    openEnds() {
      return [...ends].flatMap(([file, { at, closed }]) => (closed ? [] : [{ file, at }]))
    },
  }

  function expectBeside({ file = '', beside = [] }: EntryOf<'opened'>): void {
    for (const { file: name, bytes } of beside) {
      if ((expected.get(name)?.bytes ?? -1) < bytes) expected.set(name, { bytes, by: file })
    }
  }
}
