import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import type { Instant } from '../clock.ts'
import { wholeLines } from './lines.ts'

/** Raised when an older program could misread a newer file. */
export const BACKUP_FORMAT = 1

/** The first line. A file is gzip over lines of JSON: this one, one a row, and the last. */
export interface BackupHeader {
  keyway_backup: number
  created_at: Instant
  version: string
  /** What the rows look like: every migration that their database had. */
  migrations: string[]
  /** Tells the secret without telling anything about it. */
  secret_fingerprint: string
}

export type Row = Record<string, unknown>

interface RowLine {
  table: string
  row: Row
}

/** The last line; a file without it is not whole. */
interface LastLine {
  end: true
  counts: Record<string, number>
  /** Of all lines before, line feeds included. */
  sha256: string
}

/** It cannot be done so; the message is one sentence with what to do. */
export class BackupRefused extends Error {
  override readonly name = 'BackupRefused'
}

/** The file is no backup, not whole, or not what was written; the message is one sentence. */
export class BackupDamaged extends Error {
  override readonly name = 'BackupDamaged'
}

/** Writes beside `file` and renames in the end, so that under that name there is a whole backup or none. */
export async function writeBackup(
  file: string,
  header: BackupHeader,
  rows: AsyncIterable<RowLine>,
): Promise<Record<string, number>> {
  const partial = `${file}.partial`
  const handle = await open(partial, 'wx', 0o600)
  const counts: Record<string, number> = {}
  try {
    await pipeline(
      lines(header, rows, counts),
      createGzip(),
      handle.createWriteStream({ flush: true, autoClose: true }),
    )
    await rename(partial, file)
    return counts
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(partial, { force: true })
    throw error
  }
}

async function* lines(
  header: BackupHeader,
  rows: AsyncIterable<RowLine>,
  counts: Record<string, number>,
): AsyncGenerator<string> {
  const hash = createHash('sha256')
  const line = (value: unknown) => {
    const text = `${JSON.stringify(value)}\n`
    hash.update(text)
    return text
  }
  yield line(header)
  for await (const { table, row } of rows) {
    counts[table] = (counts[table] ?? 0) + 1
    yield line({ table, row })
  }
  yield `${JSON.stringify({ end: true, counts, sha256: hash.digest('hex') } satisfies LastLine)}\n`
}

/** Reads the whole file once and believes it only when its last line agrees. @throws BackupDamaged */
export async function checkBackup(
  file: string,
): Promise<{ header: BackupHeader; counts: Record<string, number> }> {
  let header: BackupHeader | null = null
  let last: LastLine | null = null
  const counts: Record<string, number> = {}
  const hash = createHash('sha256')
  for await (const [text, value] of parsedLines(file)) {
    if (last) throw new BackupDamaged('The backup goes on after its end.')
    if ((value as LastLine).end === true) last = value as LastLine
    else hash.update(`${text}\n`)
    if (!header) header = toHeader(value)
    else if (!last) {
      const { table } = value as RowLine
      counts[table] = (counts[table] ?? 0) + 1
    }
  }
  if (!header || !last) throw new BackupDamaged('The backup is not whole: its last line is missing.')
  if (last.sha256 !== hash.digest('hex'))
    throw new BackupDamaged('The backup was changed: its checksum differs.')
  return { header, counts }
}

/** The rows of a file that `checkBackup` has passed. */
export async function* readRows(file: string): AsyncGenerator<RowLine> {
  for await (const [, value] of parsedLines(file)) {
    if (typeof (value as RowLine).table === 'string') yield value as RowLine
  }
}

function toHeader(value: unknown): BackupHeader {
  const header = value as BackupHeader
  if (typeof header?.keyway_backup !== 'number') throw new BackupDamaged('This is not a backup of Keyway.')
  if (header.keyway_backup > BACKUP_FORMAT)
    throw new BackupDamaged('The backup was written by a newer version. Restore it with that one.')
  return header
}

async function* parsedLines(file: string): AsyncGenerator<[string, unknown]> {
  const packed = createReadStream(file)
  const unpacked = packed.pipe(createGunzip())
  packed.on('error', error => unpacked.destroy(error))
  unpacked.setEncoding('utf8')
  try {
    for await (const text of wholeLines(unpacked, refuseCut)) yield [text, parse(text)]
  } catch (error) {
    // What zlib says of a file that is cut short or something else.
    if (!(error as { code?: string }).code?.startsWith('Z_')) throw error
    throw new BackupDamaged('The backup is cut short, or no backup at all.')
  }
}

function refuseCut(): never {
  throw new BackupDamaged('The backup is not whole: its last line is cut.')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new BackupDamaged('The backup was changed: a line of it is no JSON.')
  }
}

/** The same rows, and word of every thousandth. */
export async function* counted<Each>(rows: AsyncIterable<Each>, progress?: (rows: number) => void) {
  let done = 0
  for await (const each of rows) {
    if (++done % 1000 === 0) progress?.(done)
    yield each
  }
}
