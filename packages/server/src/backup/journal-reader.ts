import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { OperatorError } from '../operator-error.ts'
import { foreignSecret, splitMac, type Trust, UNAUTHENTICATED_MEANS } from './authentication.ts'
import { type EntryOf, type JournalEntry, parseEntry } from './journal-entry.ts'
import { LineTooLong, wholeLines } from './lines.ts'

/** Versions that wrote no MACs refuse such a file with this suffix too, since they cannot parse its lines. */
const JOURNAL_SUFFIX = '.ndjson'
/** Files whose lines carry MACs; see `openJournal`. */
export const AUTHENTICATED_SUFFIX = '.v2.ndjson'
/** The longest line is the first, which names 64 files; one of a key with all its networks is a tenth of this. */
export const MAX_LINE_LENGTH = 64 * 1024

export interface JournalLine {
  file: string
  entry: JournalEntry
  /** Where the next line begins. */
  end: number
}

/** What the MAC of a line covers: the line, and by the MAC of the one before it all of the file until there. */
export function chained(previousMac: string, text: string): string {
  return `${previousMac}\n${text}`
}

/**
 * Every entry of these files, one file after the other, with at most one line and one piece in memory; each is
 * verified before it is returned. A last line without its line feed, as a crash leaves it, is passed over: no request
 * was answered before it was whole.
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
        wrong: 'is not what was written there: it was changed or moved, or lines before it are missing',
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
      `${file} is of an older version and not authenticated. Nothing was changed. ${UNAUTHENTICATED_MEANS} Or take it out of the folder, if it is not needed.`,
    )
  return parseEntry
}

/** The journal's files as they are now, by name. @throws OperatorError where there is none */
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

/** The day, as `2026-11-22`, whose entries a file has; by its name, which an authenticated file carries inside. */
export function dayOf(file: string): string {
  return basename(file).slice(0, 10)
}

export function isAuthenticated(file: string): boolean {
  return file.endsWith(AUTHENTICATED_SUFFIX)
}

const WHICH_FOLDER = 'Give the folder that KEYWAY_JOURNAL_DIR named when it was written.'

function entryOf(entry: JournalEntry | { wrong: string }, place: string): JournalEntry {
  if (!('wrong' in entry)) return entry
  throw damaged(place, entry.wrong)
}

function damaged(place: string, wrong: string): OperatorError {
  return new OperatorError(
    `${place} ${wrong}. Nothing was changed. If the file is past mending, cut it before that line and run this again with --unauthenticated; what came after is lost.`,
  )
}

function unreadable(error: unknown, place: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall === undefined) return error
  return new OperatorError(`The journal at ${place} cannot be read (${code}). ${WHICH_FOLDER}`)
}

/** What the first lines of files say about the files beside them, held against the files that are there. */
export interface Completeness {
  note(line: JournalLine): void
  /**
   * @param neededSince the day from which on no file may be missing
   * @returns why the journal lacks something, or null
   */
  whatIsMissing(neededSince: string): string | null
  /** Files that end without their closing line, with the instant of their last entry. */
  openEnds(): { file: string; at: number }[]
}

/** The tail of a file is covered by the files that were begun after it; that of the newest by nothing but `closed`. */
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
        if (!there && dayOf(name) >= neededSince) return `${name} is missing, which ${by} names`
        if (there && there.bytes < bytes)
          return `${name} is cut short: it has ${there.bytes} bytes of whole lines, and had ${bytes} when ${by} was begun`
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
