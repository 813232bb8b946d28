import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { type Instant, toRfc3339 } from '../clock.ts'
import { LineTooLong, wholeLines } from '../lines.ts'
import { OperatorError } from '../operator-error.ts'
import { type FileSecrets, splitMac, type Trust, UNAUTHENTICATED_MEANS, withMac } from './authentication.ts'

/**
 * Increased when an older version could misread a newer file. Format 1 ended with a plain checksum, which anyone can
 * compute; format 2 ends with a MAC under `KEYWAY_SECRET` over everything before it.
 */
export const BACKUP_FORMAT = 2
const UNAUTHENTICATED_FORMAT = 1
/** In UTF-16 code units. The longest rows (queued mail, sealed and escaped) are far shorter. */
const MAX_LINE_LENGTH = 4 * 1024 * 1024

/**
 * The first line. A backup is gzip-compressed JSON lines: this header, one line per row, and a last line with the
 * MAC.
 */
export interface BackupHeader {
  keyway_backup: number
  /**
   * The file name it was written to, so that an old backup cannot be renamed to replace a newer one. Since format 2.
   */
  file?: string
  /** The id of the service, as in its journal; null before its first start. Since format 2. */
  service?: string | null
  created_at: Instant
  version: string
  /** Schema of the rows: all migrations that were applied to the database. */
  migrations: string[]
  /** Identifies the secret without revealing anything about it. */
  secret_fingerprint: string
}

export type Row = Record<string, unknown>

interface RowLine {
  table: string
  row: Row
}

/** The last line; without it a file is truncated. */
interface LastLine {
  end: true
  counts: Record<string, number>
  /** Format 1: of all preceding lines, including line feeds. */
  sha256?: string
}

/** A verified file. */
export interface CheckedBackup {
  file: string
  header: BackupHeader
  counts: Record<string, number>
  /** Digest of the verified content, to detect changes before it is read again. */
  digest: string
}

/** Writes to a temporary file and renames it, so that `file` is either a complete backup or absent. */
export async function writeBackup(
  file: string,
  header: BackupHeader,
  rows: AsyncIterable<RowLine>,
  secrets: FileSecrets,
): Promise<Record<string, number>> {
  const partial = `${file}.partial`
  const handle = await open(partial, 'wx', 0o600)
  const counts: Record<string, number> = {}
  try {
    await pipeline(
      lines(header, rows, counts, secrets),
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
  secrets: FileSecrets,
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
  const last = JSON.stringify({ end: true, counts } satisfies LastLine)
  yield `${withMac(last, secrets.mac('backup', authenticatedText(hash.digest('hex'), last)))}\n`
}

function authenticatedText(hashOfLines: string, last: string): string {
  return `${hashOfLines}\n${last}`
}

/**
 * Reads the whole file once. Nothing in it but its format is trusted before the MAC at its end is verified.
 *
 * @throws OperatorError
 */
export async function checkBackup(file: string, trust: Trust): Promise<CheckedBackup> {
  let header: BackupHeader | null = null
  let last = ''
  const hash = createHash('sha256')
  for await (const text of textLines(file)) {
    if (header) hash.update(`${last}\n`)
    else header = toHeader(parse(text), file, trust)
    last = text
  }
  if (!header) throw new OperatorError('This is not a backup of Keyway.')
  const hashOfLines = hash.digest('hex')
  const { counts } = verifyLast(header, last, hashOfLines, trust)
  return { file, header, counts, digest: authenticatedText(hashOfLines, last) }
}

function verifyLast(header: BackupHeader, line: string, hashOfLines: string, { secrets }: Trust): LastLine {
  const { text, mac } = splitMac(line) ?? { text: line, mac: null }
  const last = parse(text) as LastLine
  if (last?.end !== true) throw new OperatorError('The backup is truncated: its last line is missing.')
  const isGenuine =
    header.keyway_backup === UNAUTHENTICATED_FORMAT
      ? last.sha256 === hashOfLines
      : mac !== null && secrets.verifyMac('backup', authenticatedText(hashOfLines, text), mac)
  if (!isGenuine) throw new OperatorError('The backup was modified: its MAC does not match its content.')
  return last
}

/**
 * The rows of a verified file. Throws after the last one if the file changed since it was verified, so rows must only
 * be used within a transaction that can be rolled back.
 *
 * @throws OperatorError
 */
export async function* readRows({ file, digest }: CheckedBackup): AsyncGenerator<RowLine> {
  const hash = createHash('sha256')
  let number = 0
  let last = ''
  for await (const text of textLines(file)) {
    if (number > 0) hash.update(`${last}\n`)
    if (number > 1) yield parse(last) as RowLine
    number++
    last = text
  }
  if (authenticatedText(hash.digest('hex'), last) !== digest)
    throw new OperatorError('The backup was modified while it was read.')
}

/** The header is not verified yet: it may be a reason to refuse the file, but never to accept it. */
function toHeader(value: unknown, file: string, { secrets, unauthenticated }: Trust): BackupHeader {
  if (!isHeader(value)) throw new OperatorError('This is not a backup of Keyway.')
  const header = value
  if (header.keyway_backup > BACKUP_FORMAT)
    throw new OperatorError('The backup was written by a newer version. Restore it with that one.')
  if (!secrets.ids.includes(header.secret_fingerprint))
    throw new OperatorError(
      `The backup was written with the secret ${header.secret_fingerprint}, but KEYWAY_SECRET has ${secrets.ids.join(', ')}. Restore with the secret of the backup; it may be listed after a new one.`,
    )
  if (header.keyway_backup !== BACKUP_FORMAT && !unauthenticated)
    throw new OperatorError(
      `The backup is of an older version and not authenticated. ${UNAUTHENTICATED_MEANS}`,
    )
  if (header.file !== undefined && header.file !== basename(file))
    throw new OperatorError(
      `${basename(file)} was written as ${JSON.stringify(header.file)} at ${toRfc3339(header.created_at)}. If that is the backup to restore, rename the file back.`,
    )
  return header
}

function isHeader(value: unknown): value is BackupHeader {
  const header = value as BackupHeader | null
  return (
    typeof header?.keyway_backup === 'number' &&
    /^[0-9a-f]{8}$/.test(header.secret_fingerprint) &&
    Number.isFinite(new Date(header.created_at).getTime()) &&
    Array.isArray(header.migrations) &&
    (header.keyway_backup === UNAUTHENTICATED_FORMAT || typeof header.file === 'string')
  )
}

async function* textLines(file: string): AsyncGenerator<string> {
  const packed = createReadStream(file)
  const unpacked = packed.pipe(createGunzip())
  packed.on('error', error => unpacked.destroy(error))
  unpacked.setEncoding('utf8')
  try {
    yield* wholeLines(unpacked, MAX_LINE_LENGTH, refuseCut)
  } catch (error) {
    if (error instanceof LineTooLong) throw new OperatorError('The backup was modified: a line is too long.')
    // zlib's errors for a truncated file or another format.
    if (!(error as { code?: string }).code?.startsWith('Z_')) throw error
    throw new OperatorError('The file is truncated or not a backup.')
  }
}

function refuseCut(): never {
  throw new OperatorError('The backup is truncated: its last line is incomplete.')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new OperatorError('The backup was modified: a line is not JSON.')
  }
}

/** Passes the rows through and calls `progress` for every 1000. */
export async function* withProgress<Each>(rows: AsyncIterable<Each>, progress?: (rows: number) => void) {
  let done = 0
  for await (const each of rows) {
    if (++done % 1000 === 0) progress?.(done)
    yield each
  }
}
