import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { LineTooLong, wholeLines } from '../lines.ts'
import { OperatorError } from '../operator-error.ts'
import { splitMac, type Trust, UNAUTHENTICATED_RISK, unknownSecretProblem } from './authentication.ts'
import { type EntryOf, type JournalEntry, parseEntry } from './journal-entry.ts'

/**
 * The suffix of all journal files. Authenticated files have it too, so that older versions, which know no MACs, find
 * these files and refuse them instead of ignoring them.
 */
const JOURNAL_SUFFIX = '.ndjson'
/** The suffix of files whose lines have MACs; see `openJournal`. */
export const AUTHENTICATED_SUFFIX = '.v2.ndjson'
/**
 * Maximum length of a line, in UTF-16 code units. The longest line is the first of a file, which lists up to 64 other
 * files of the journal; the entry of a key with the maximum number of networks takes a tenth of this.
 */
export const MAX_LINE_LENGTH = 64 * 1024

export interface JournalLine {
  file: string
  entry: JournalEntry
  /** Byte offset of the next line in the file. */
  nextOffset: number
}

/** The text that a line's MAC authenticates: the line and the previous MAC, and thereby all preceding lines. */
export function textForMac(previousMac: string, text: string): string {
  return `${previousMac}\n${text}`
}

/**
 * Reads every entry of these files in order, with at most one line and one chunk in memory, and verifies each before
 * yielding it. A last line without a line feed, as after a crash, is skipped: no request was answered before its line
 * was complete.
 *
 * @throws OperatorError if a file cannot be read or is not accepted, or a line is invalid
 */
export async function* readJournalLines(files: readonly string[], trust: Trust): AsyncGenerator<JournalLine> {
  for (const file of files) {
    let lineNumber = 0
    let nextOffset = 0
    const readLine = file.endsWith(AUTHENTICATED_SUFFIX)
      ? authenticatedReader(file, trust)
      : plainReader(file, trust)
    try {
      for await (const line of wholeLines(createReadStream(file, 'utf8'), MAX_LINE_LENGTH)) {
        lineNumber++
        nextOffset += Buffer.byteLength(line) + 1
        yield {
          file,
          entry: entryOrThrow(readLine(line, lineNumber), `Line ${lineNumber} of ${file}`),
          nextOffset,
        }
      }
    } catch (error) {
      if (error instanceof LineTooLong) throw invalidLine(`Line ${lineNumber + 1} of ${file}`, 'is too long')
      throw toReadError(error, file)
    }
  }
}

type LineReader = (line: string, lineNumber: number) => JournalEntry | { problem: string }

function authenticatedReader(file: string, { secrets }: Trust): LineReader {
  let previousMac = ''
  return (line, lineNumber) => {
    const parts = splitMac(line)
    if (!parts) return { problem: 'has no MAC' }
    const secretProblem = unknownSecretProblem(parts.mac, secrets)
    if (secretProblem) return { problem: secretProblem }
    if (!secrets.verifyMac('journal', textForMac(previousMac, parts.text), parts.mac))
      return {
        problem: 'has a wrong MAC: it was modified or moved, or lines before it are missing',
      }
    previousMac = parts.mac
    const entry = parseEntry(parts.text)
    if ('problem' in entry || lineNumber > 1) return entry
    if (entry.type !== 'opened') return { problem: 'is not the beginning of a file' }
    if (entry.file !== basename(file))
      return { problem: `belongs to the file ${JSON.stringify(entry.file)}, which has another name here` }
    return entry
  }
}

function plainReader(file: string, { unauthenticated }: Trust): LineReader {
  if (!unauthenticated)
    throw new OperatorError(
      `${file} is of an older version and not authenticated. Nothing was changed. ${UNAUTHENTICATED_RISK} Or remove it from the folder, if it is not needed.`,
    )
  return parseEntry
}

/** Lists the journal's files, sorted by name. @throws OperatorError if there is none, or the folder cannot be read */
export async function journalFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(error => {
    throw toReadError(error, folder)
  })
  const files = names
    .filter(name => name.endsWith(JOURNAL_SUFFIX))
    .sort()
    .map(name => join(folder, name))
  if (files.length > 0) return files
  throw new OperatorError(`There is no journal in ${folder}. ${FOLDER_ADVICE}`)
}

/**
 * The day of a file's entries, as `2026-11-22`, from its name, which the first line of an authenticated file repeats.
 */
export function dayOf(file: string): string {
  return basename(file).slice(0, 10)
}

export function isAuthenticated(file: string): boolean {
  return file.endsWith(AUTHENTICATED_SUFFIX)
}

const FOLDER_ADVICE = 'Use the folder that KEYWAY_JOURNAL_DIR named when the journal was written.'

function entryOrThrow(entry: JournalEntry | { problem: string }, place: string): JournalEntry {
  if (!('problem' in entry)) return entry
  throw invalidLine(place, entry.problem)
}

function invalidLine(place: string, problem: string): OperatorError {
  return new OperatorError(
    `${place} ${problem}. Nothing was changed. If the file cannot be recovered, truncate it before that line and run this again with --unauthenticated; later entries are lost.`,
  )
}

/** An OperatorError for errors of the file system; other errors unchanged. */
function toReadError(error: unknown, place: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall === undefined) return error
  return new OperatorError(`The journal at ${place} cannot be read (${code}). ${FOLDER_ADVICE}`)
}

/** Compares the files that were read with the lists of files in their first lines. */
export interface Completeness {
  add(line: JournalLine): void
  /**
   * @param neededSince the day from which on no file may be missing
   * @returns a sentence that names a missing file of these days, or a truncated file of any day; null if there is none
   */
  findMissing(neededSince: string): string | null
  /** Authenticated files that do not end with a `closed` entry, with the time of their last entry. */
  openEnds(): { file: string; at: number }[]
}

/** Later files list the lengths of earlier ones; the end of the newest file is only confirmed by its `closed` entry. */
export function createCompleteness(): Completeness {
  /**
   * The authenticated files whose lines were added, by name, with their length so far and the time of the last line.
   */
  const verifiedFiles = new Map<string, { bytes: number; at: number; closed: boolean }>()
  /** The files that other files list, by name, with their largest listed length. */
  const listedFiles = new Map<string, { bytes: number; listedBy: string }>()

  return {
    add({ file, entry, nextOffset }) {
      if (!isAuthenticated(file)) return
      verifiedFiles.set(basename(file), { bytes: nextOffset, at: entry.at, closed: entry.type === 'closed' })
      if (entry.type === 'opened') addListedFiles(entry)
    },
    findMissing(neededSince) {
      for (const [name, { bytes, listedBy }] of listedFiles) {
        const foundFile = verifiedFiles.get(name)
        if (!foundFile && dayOf(name) >= neededSince) return `${name} is missing, which ${listedBy} lists`
        if (foundFile && foundFile.bytes < bytes)
          return `${name} is truncated: it has ${foundFile.bytes} bytes of complete lines, and had ${bytes} when ${listedBy} was created`
      }
      return null
    },
    openEnds() {
      return [...verifiedFiles].flatMap(([file, { at, closed }]) => (closed ? [] : [{ file, at }]))
    },
  }

  function addListedFiles({ file = '', beside = [] }: EntryOf<'opened'>): void {
    for (const { file: name, bytes } of beside) {
      if ((listedFiles.get(name)?.bytes ?? -1) < bytes) listedFiles.set(name, { bytes, listedBy: file })
    }
  }
}
