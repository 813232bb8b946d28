import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { type Instant, toRfc3339 } from '../clock.ts'
import { LineTooLong, wholeLines } from '../lines.ts'
import { OperatorError } from '../operator-error.ts'
import { type FileSecrets, splitMac, type Trust, UNAUTHENTICATED_RISK, withMac } from './authentication.ts'

/**
 * Increased when an older version could misread a newer file. Format 1 ended with a plain checksum, which anyone can
 * compute; format 2 ends with a MAC under `KEYWAY_SECRET` over everything before it.
 */
export const BACKUP_FORMAT = 2
const UNAUTHENTICATED_FORMAT = 1
/** In UTF-16 code units. Even the longest lines, those of queued mail, are far shorter. */
const MAX_LINE_LENGTH = 4 * 1024 * 1024

/**
 * The first line. A backup is gzip-compressed JSON lines: this header, one line per row, and a last line with the
 * MAC.
 */
export interface BackupHeader {
  keyway_backup: number
  /**
   * The original name of the file, so that an old backup cannot be renamed to replace a newer one. Absent in format 1.
   */
  file?: string
  /** The id of the service, as in its journal; null before the service's first start. Absent in format 1. */
  service?: string | null
  created_at: Instant
  version: string
  /** All migrations that were applied to the database, which define the schema of the rows. */
  migrations: string[]
  /** The id (`Secrets.ids`) of the secret that authenticates the backup. It reveals nothing about the secret. */
  secret_fingerprint: string
}

export type Row = Record<string, unknown>

interface RowLine {
  table: string
  row: Row
}

/** The last line. A file without this line is truncated. */
interface LastLine {
  end: true
  /** The number of rows, by table. */
  counts: Record<string, number>
  /** Only in format 1: the checksum of all preceding lines, including line feeds. */
  sha256?: string
}

export interface CheckedBackup {
  file: string
  header: BackupHeader
  counts: Record<string, number>
  /** Digest of the verified content, to detect whether the file was changed when it is read again. */
  digest: string
}

/**
 * Writes to a temporary file and renames it, so that `file` never is an incomplete backup. Returns the number of rows,
 * by table.
 */
export async function writeBackup(
  file: string,
  header: BackupHeader,
  rows: AsyncIterable<RowLine>,
  secrets: FileSecrets,
): Promise<Record<string, number>> {
  const partialFile = `${file}.partial`
  const handle = await open(partialFile, 'wx', 0o600)
  const counts: Record<string, number> = {}
  try {
    await pipeline(
      backupLines(header, rows, counts, secrets),
      createGzip(),
      handle.createWriteStream({ flush: true, autoClose: true }),
    )
    await rename(partialFile, file)
    return counts
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(partialFile, { force: true })
    throw error
  }
}

async function* backupLines(
  header: BackupHeader,
  rows: AsyncIterable<RowLine>,
  counts: Record<string, number>,
  secrets: FileSecrets,
): AsyncGenerator<string> {
  const hash = createHash('sha256')
  const toHashedLine = (value: unknown) => {
    const text = `${JSON.stringify(value)}\n`
    hash.update(text)
    return text
  }
  yield toHashedLine(header)
  for await (const { table, row } of rows) {
    counts[table] = (counts[table] ?? 0) + 1
    yield toHashedLine({ table, row })
  }
  const lastLine = JSON.stringify({ end: true, counts } satisfies LastLine)
  yield `${withMac(lastLine, secrets.mac('backup', authenticatedText(hash.digest('hex'), lastLine)))}\n`
}

function authenticatedText(hashOfLines: string, lastLine: string): string {
  return `${hashOfLines}\n${lastLine}`
}

/**
 * Reads and verifies the whole file once. Before the MAC at the end is verified, nothing in the file is trusted except
 * the format that it claims.
 *
 * @throws OperatorError if the content is refused; errors of the file system, such as a missing file, unchanged
 */
export async function checkBackup(file: string, trust: Trust): Promise<CheckedBackup> {
  let header: BackupHeader | null = null
  let lastLine = ''
  const hash = createHash('sha256')
  for await (const text of textLines(file)) {
    if (header) hash.update(`${lastLine}\n`)
    else header = toHeader(parse(text), file, trust)
    lastLine = text
  }
  if (!header) throw new OperatorError('This is not a backup of Keyway.')
  const hashOfLines = hash.digest('hex')
  const { counts } = verifyLastLine(header, lastLine, hashOfLines, trust)
  return { file, header, counts, digest: authenticatedText(hashOfLines, lastLine) }
}

function verifyLastLine(
  header: BackupHeader,
  line: string,
  hashOfLines: string,
  { secrets }: Trust,
): LastLine {
  const { text, mac } = splitMac(line) ?? { text: line, mac: null }
  const lastLine = parse(text) as LastLine
  if (lastLine?.end !== true) throw new OperatorError('The backup is truncated: its last line is missing.')
  const isGenuine =
    header.keyway_backup === UNAUTHENTICATED_FORMAT
      ? lastLine.sha256 === hashOfLines
      : mac !== null && secrets.verifyMac('backup', authenticatedText(hashOfLines, text), mac)
  if (!isGenuine) throw new OperatorError('The backup was modified: its MAC does not match its content.')
  return lastLine
}

/**
 * The rows of a verified file. A change of the file since it was verified may be noticed only after the last row, so
 * the rows must only be used within a transaction that can be rolled back.
 *
 * @throws OperatorError if the file was changed since it was verified
 */
export async function* readRows({ file, digest }: CheckedBackup): AsyncGenerator<RowLine> {
  const hash = createHash('sha256')
  let lineNumber = 0
  let lastLine = ''
  for await (const text of textLines(file)) {
    if (lineNumber > 0) hash.update(`${lastLine}\n`)
    if (lineNumber > 1) yield parse(lastLine) as RowLine
    lineNumber++
    lastLine = text
  }
  if (authenticatedText(hash.digest('hex'), lastLine) !== digest)
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
      `The backup is of an older version and not authenticated. ${UNAUTHENTICATED_RISK}`,
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
  const compressed = createReadStream(file)
  const uncompressed = compressed.pipe(createGunzip())
  compressed.on('error', error => uncompressed.destroy(error))
  uncompressed.setEncoding('utf8')
  try {
    yield* wholeLines(uncompressed, MAX_LINE_LENGTH, refuseTruncated)
  } catch (error) {
    if (error instanceof LineTooLong) throw new OperatorError('The backup was modified: a line is too long.')
    // The codes of zlib's errors, for a truncated file or another format, begin with `Z_`.
    if (!(error as { code?: string }).code?.startsWith('Z_')) throw error
    throw new OperatorError('The file is truncated or not a backup.')
  }
}

function refuseTruncated(): never {
  throw new OperatorError('The backup is truncated: its last line is incomplete.')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new OperatorError('The backup was modified: a line is not JSON.')
  }
}

/** Yields the same rows, and calls `progress` after every 1000 rows. */
export async function* withProgress<Each>(rows: AsyncIterable<Each>, progress?: (rows: number) => void) {
  let count = 0
  for await (const row of rows) {
    if (++count % 1000 === 0) progress?.(count)
    yield row
  }
}
