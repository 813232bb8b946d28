import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import {
  type BackupHeader,
  checkBackup,
  readRows,
  withProgress,
  writeBackup,
} from '../../src/backup/backup-file.ts'
import { createSecrets } from '../../src/secrets.ts'
import { changeBackup, toOldBackup } from '../backup/files.ts'
import { temporaryFolder } from '../support/serve.ts'

const secrets = createSecrets([Buffer.alloc(32, 1)])
const TRUST = { secrets, unauthenticated: false }
const TRUST_UNAUTHENTICATED = { secrets, unauthenticated: true }
const ROWS = [
  { table: 'users', row: { id: 'ä' } },
  { table: 'users', row: { id: 'b' } },
  { table: 'keys', row: { id: 'c', name: null } },
]
const HEADER: BackupHeader = {
  keyway_backup: 2,
  file: 'monday.keyway',
  service: 'service',
  created_at: 1_900_000_000_000,
  version: '1.0.0',
  migrations: ['0001'],
  secret_fingerprint: secrets.fingerprint,
}

async function* rowsOf<Each>(rows: readonly Each[]) {
  yield* rows
}

async function collect<Each>(each: AsyncIterable<Each>): Promise<Each[]> {
  return Array.fromAsync(each)
}

async function open(t: TestContext, header: object = {}) {
  const { path, remove } = temporaryFolder()
  t.after(remove)
  const file = join(path, 'monday.keyway')
  const counts = await writeBackup(file, { ...HEADER, ...header }, rowsOf(ROWS), secrets)
  /** The message of the error that refuses the file. */
  const refusal = (trust = TRUST) =>
    checkBackup(file, trust).then(
      () => assert.fail('it was accepted'),
      ({ message }: Error) => message,
    )
  const lines = () => gunzipSync(readFileSync(file)).toString().trimEnd().split('\n')
  const write = (texts: readonly string[], end = '\n') =>
    writeFileSync(file, gzipSync(texts.join('\n') + end))
  return { path, file, counts, refusal, lines, write }
}

test('a backup is read as it was written, with the number of rows of each table', async t => {
  const { file, counts } = await open(t)
  assert.deepEqual(counts, { users: 2, keys: 1 })
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(existsSync(`${file}.partial`), false)
  const checkedBackup = await checkBackup(file, TRUST)
  assert.deepEqual([checkedBackup.header, checkedBackup.counts, checkedBackup.file], [HEADER, counts, file])
  assert.deepEqual(await collect(readRows(checkedBackup)), ROWS)
})

test('characters of several bytes are read whole wherever a chunk of the file ends', async t => {
  const { path } = await open(t)
  const file = join(path, 'tuesday.keyway')
  const rows = ['', 'x', 'xx'].map(shift => ({ table: 'users', row: { id: shift + '€'.repeat(50_000) } }))
  await writeBackup(file, { ...HEADER, file: 'tuesday.keyway' }, rowsOf(rows), secrets)
  assert.deepEqual(await collect(readRows(await checkBackup(file, TRUST))), rows)
})

test('a backup that fails leaves no file', async t => {
  const { path } = await open(t)
  const file = join(path, 'tuesday.keyway')
  async function* failAfterFirstRow() {
    yield ROWS[0]!
    throw new Error('the database is gone')
  }
  await assert.rejects(writeBackup(file, HEADER, failAfterFirstRow(), secrets), /database is gone/)
  assert.deepEqual([existsSync(file), existsSync(`${file}.partial`)], [false, false])
  writeFileSync(`${file}.partial`, '')
  await assert.rejects(writeBackup(file, HEADER, rowsOf(ROWS), secrets), { code: 'EEXIST' })
})

test('a changed, missing or additional line is refused, and one that is no JSON or too long', async t => {
  const { file, refusal, lines, write } = await open(t)
  const original = lines()
  const [header = '', first = '', ...rest] = original
  const modifiedMessage = 'The backup was modified: its MAC does not match its content.'
  for (const change of [
    [header, first.replace('ä', 'a'), ...rest],
    [header, ...rest],
    [header, first, first, ...rest],
    [header, ...original.slice(1, -1).toReversed(), original.at(-1)!],
    [header.replace('"0001"', '"0002"'), first, ...rest],
    [...original.slice(0, -1), original.at(-1)!.replace('"users":2', '"users":3')],
    [...original.slice(0, -1), original.at(-1)!.split('\t')[0]!],
  ]) {
    write(change)
    assert.equal(await refusal(), modifiedMessage)
  }
  write([header, ...rest.slice(0, -1)])
  assert.equal(await refusal(), 'The backup is truncated: its last line is missing.')
  write([header, 'null'])
  assert.equal(await refusal(), 'The backup is truncated: its last line is missing.')
  write(original, '')
  assert.equal(await refusal(), 'The backup is truncated: its last line is incomplete.')
  write([header, '{'])
  assert.equal(await refusal(), 'The backup was modified: a line is not JSON.')
  write([header, 'x'.repeat(4 * 1024 * 1024 + 1), ...rest])
  assert.equal(await refusal(), 'The backup was modified: a line is too long.')
  write(original)
  await checkBackup(file, TRUST)
})

test('a file that is cut off or no backup is refused', async t => {
  const { file, refusal, write } = await open(t)
  const originalBytes = readFileSync(file)
  writeFileSync(file, originalBytes.subarray(0, -10))
  assert.equal(await refusal(), 'The file is truncated or not a backup.')
  writeFileSync(file, 'something else')
  assert.equal(await refusal(), 'The file is truncated or not a backup.')
  const notABackupMessage = 'This is not a backup of Keyway.'
  write([], '')
  assert.equal(await refusal(), notABackupMessage)
  for (const header of [
    null,
    1,
    {},
    { ...HEADER, keyway_backup: '2' },
    { ...HEADER, secret_fingerprint: 'x' },
    { ...HEADER, created_at: 'never' },
    { ...HEADER, migrations: '0001' },
    { ...HEADER, file: undefined },
  ]) {
    write([JSON.stringify(header)])
    assert.equal(await refusal(), notABackupMessage, JSON.stringify(header))
  }
  writeFileSync(file, originalBytes)
  await checkBackup(file, TRUST)
  await assert.rejects(checkBackup(`${file}.gone`, TRUST), { code: 'ENOENT' })
})

test('a backup of a newer version, another secret or another name is refused', async t => {
  const newerBackup = await open(t, { keyway_backup: 3 })
  assert.match(await newerBackup.refusal(), /^The backup was written by a newer version\./)
  const backupOfOtherSecret = await open(t, { secret_fingerprint: '00000000' })
  assert.match(
    await backupOfOtherSecret.refusal(),
    /with the secret 00000000, but KEYWAY_SECRET has [0-9a-f]{8}\. /,
  )
  const renamedBackup = await open(t, { file: 'sunday.keyway' })
  assert.equal(
    await renamedBackup.refusal(),
    'monday.keyway was written as "sunday.keyway" at 2030-03-17T17:46:40.000Z. If that is the backup to restore, rename the file back.',
  )
})

test('a backup of the format without MACs is read only if the operator accepts it, and verified by its checksum', async t => {
  const { file, refusal, lines, write } = await open(t)
  toOldBackup(file, file)
  changeBackup(file, file, all => all)
  assert.match(await refusal(), /^The backup is of an older version and not authenticated\. --unauth/)
  assert.deepEqual(await collect(readRows(await checkBackup(file, TRUST_UNAUTHENTICATED))), ROWS)
  write(lines().map(line => line.replace('ä', 'a')))
  assert.match(await refusal(TRUST_UNAUTHENTICATED), /^The backup was modified: its MAC/)
})

test('a file that changes after it was verified is noticed after its last row', async t => {
  const { file, lines, write } = await open(t)
  const checkedBackup = await checkBackup(file, TRUST)
  const originalLines = lines()
  write(originalLines.map(line => line.replace('ä', 'a')))
  await assert.rejects(
    collect(readRows(checkedBackup)),
    /^OperatorError: The backup was modified while it was read\.$/,
  )
  write(originalLines.with(-1, originalLines.at(-1)!.replace('"users":2', '"users":3')))
  await assert.rejects(collect(readRows(checkedBackup)), /modified while it was read/)
})

test('progress is reported for each thousand rows', async () => {
  const reportedCounts: number[] = []
  const rows = Array.from({ length: 2500 }, (_, row) => row)
  assert.deepEqual(await collect(withProgress(rowsOf(rows), count => reportedCounts.push(count))), rows)
  assert.deepEqual(reportedCounts, [1000, 2000])
  assert.deepEqual(await collect(withProgress(rowsOf(rows))), rows)
})
