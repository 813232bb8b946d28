import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Trust, withMac } from '../../src/backup/authentication.ts'
import { openJournal } from '../../src/backup/journal.ts'
import type { JournalEntry } from '../../src/backup/journal-entry.ts'
import { journalFiles, readJournalLines, textForMac } from '../../src/backup/journal-reader.ts'
import { DAY } from '../../src/clock.ts'
import { createSecrets } from '../../src/secrets.ts'
import { linesOf, namesIn } from '../backup/files.ts'
import { temporaryFolder } from '../support/serve.ts'

const secrets = createSecrets([Buffer.alloc(32, 1)])
const NOON = Date.UTC(2030, 0, 1, 12)
const link = (id: string): JournalEntry => ({ type: 'magic_link', at: NOON, id })

function open(t: TestContext) {
  const { path, remove } = temporaryFolder()
  t.after(remove)
  const folder = join(path, 'journal')
  const clock = { at: NOON, now: () => clock.at }
  return { folder, clock, journal: () => openJournal(folder, { clock, secrets, serviceId: 'service' }) }
}

async function read(files: readonly string[], trust: Partial<Trust> = {}): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = []
  for await (const { entry } of readJournalLines(files, { secrets, unauthenticated: false, ...trust }))
    entries.push(entry)
  return entries
}

/** Writes a file with these texts as lines, each with the MAC that the journal would give it. */
function writeSigned(path: string, texts: readonly string[]): void {
  let mac = ''
  const lines = texts.map(text => {
    mac = secrets.mac('journal', textForMac(mac, text))
    return `${withMac(text, mac)}\n`
  })
  writeFileSync(path, lines.join(''))
}

test('a journal begins with a file of its day, which only its owner can read, and ends it when it is closed', async t => {
  const { folder, clock, journal } = open(t)
  const openedJournal = await journal()
  const [name] = namesIn(folder)
  assert.match(name!, /^2030-01-01-[0-9a-f]{12}\.v2\.ndjson$/)
  assert.deepEqual(
    [statSync(folder).mode & 0o777, statSync(join(folder, name!)).mode & 0o777],
    [0o700, 0o600],
  )
  await openedJournal.append([])
  await Promise.all([openedJournal.append([link('a'), link('b')]), openedJournal.append([link('c')])])
  clock.at += 1
  await openedJournal.close()
  assert.deepEqual(await read([join(folder, name!)]), [
    { type: 'opened', at: NOON, instance: 'service', file: name, beside: [] },
    link('a'),
    link('b'),
    link('c'),
    { type: 'closed', at: NOON + 1 },
  ])
})

test('a journal with files gets another one at the first entry, and one for each day', async t => {
  const { folder, clock, journal } = open(t)
  await (await journal()).close()
  const [first] = namesIn(folder)
  const reopenedJournal = await journal()
  await reopenedJournal.append([])
  assert.deepEqual(namesIn(folder), [first])
  await reopenedJournal.append([link('a')])
  const secondName = namesIn(folder).find(name => name !== first)!
  clock.at += DAY
  await reopenedJournal.append([link('b')])
  await reopenedJournal.append([link('c')])
  const thirdName = namesIn(folder).find(name => name !== first && name !== secondName)!
  assert.match(thirdName, /^2030-01-02-/)
  assert.deepEqual((await read([join(folder, secondName)])).at(-1), { type: 'closed', at: NOON + DAY })
  const [opening, ...entries] = await read([join(folder, thirdName)])
  const bytesOf = (file: string) => ({ file, bytes: statSync(join(folder, file)).size })
  assert.deepEqual(opening, {
    type: 'opened',
    at: NOON + DAY,
    instance: 'service',
    file: thirdName,
    beside: [first!, secondName].sort().map(bytesOf),
  })
  assert.deepEqual(entries, [link('b'), link('c')])
  await reopenedJournal.close()
})

test('a file lists the 64 newest others with the length of their complete lines', async t => {
  const { folder, journal } = open(t)
  await (await journal()).close()
  const names = Array.from({ length: 70 }, (_, at) => `2029-12-01-${String(at).padStart(12, '0')}.v2.ndjson`)
  for (const name of names) writeFileSync(join(folder, name), 'whole\nwhole\ncut off')
  writeFileSync(join(folder, names[69]!), `${'x'.repeat(100_000)}\n${'y'.repeat(60_000)}`)
  writeFileSync(join(folder, '2030-01-01-other.ndjson'), 'another suffix\n')
  const openedJournal = await journal()
  await openedJournal.append([link('a')])
  await openedJournal.close()
  const newestName = namesIn(folder).find(name =>
    readFileSync(join(folder, name), 'utf8').includes('magic_link'),
  )!
  const [opening] = await read([join(folder, newestName)])
  assert.ok(opening?.type === 'opened' && opening.beside)
  assert.deepEqual(
    opening.beside.slice(0, -1).map(({ file, bytes }) => [file, bytes]),
    names.slice(7).map(name => [name, name === names[69] ? 100_001 : 12]),
  )
  assert.match(opening.beside.at(-1)!.file, /^2030-01-01-/)
  assert.equal(opening.beside.length, 64)
})

test('entries are read with the offset of the next line, and an incomplete last line is skipped', async t => {
  const { folder, journal } = open(t)
  const openedJournal = await journal()
  await openedJournal.append([link('ä')])
  const file = join(folder, namesIn(folder)[0]!)
  appendFileSync(file, 'incomplete')
  const lineEnds: number[] = []
  for await (const line of readJournalLines([file], { secrets, unauthenticated: false })) {
    assert.equal(line.file, file)
    lineEnds.push(line.nextOffset)
  }
  const [a, b] = linesOf(file).map(line => Buffer.byteLength(line))
  assert.deepEqual(lineEnds, [a, a! + b!])
  await openedJournal.close()
})

test('characters of several bytes are read whole wherever a chunk of the file ends', async t => {
  const { folder, journal } = open(t)
  const ids = ['', 'x', 'xx'].flatMap(shift => Array.from({ length: 5 }, () => shift + '€'.repeat(6000)))
  const openedJournal = await journal()
  await openedJournal.append(ids.map(link))
  await openedJournal.close()
  const entries = await read([join(folder, namesIn(folder)[0]!)])
  assert.deepEqual(entries.slice(1, -1), ids.map(link))
})

test('each kind of damage is named with its line and its file', async t => {
  const { folder, journal } = open(t)
  await (await journal()).close()
  const name = '2030-01-02-000000000000.v2.ndjson'
  const file = join(folder, name)
  const openingLine = JSON.stringify({ type: 'opened', at: NOON, file: name })
  const text = JSON.stringify(link('a'))
  const assertDamage = async (expected: RegExp, line = 2) => {
    await assert.rejects(read([file]), ({ message }: Error) => {
      assert.ok(message.startsWith(`Line ${line} of ${file} `), message)
      assert.match(message, expected)
      return /\. Nothing was changed\. If the file cannot be recovered/.test(message)
    })
  }
  writeSigned(file, [openingLine, text])
  assert.equal((await read([file])).length, 2)
  appendFileSync(file, `${text}\n`)
  await assertDamage(/ has no MAC\./, 3)
  writeSigned(file, [openingLine, text])
  appendFileSync(file, linesOf(file)[1]!)
  await assertDamage(/ has a wrong MAC: it was modified or moved, or lines before it are missing\./, 3)
  writeSigned(file, [openingLine, 'null'])
  await assertDamage(/ is not a journal entry\./)
  writeSigned(file, [text])
  await assertDamage(/ is not the beginning of a file\./, 1)
  writeSigned(file, [JSON.stringify({ type: 'opened', at: NOON, file: 'other' })])
  await assertDamage(/ belongs to the file "other", which has another name here\./, 1)
  writeSigned(file, [openingLine])
  appendFileSync(file, `${withMac(text, `${'0'.repeat(8)}.x`)}\n`)
  await assertDamage(
    / was written with the secret 00000000, but KEYWAY_SECRET has [0-9a-f]{8}\. Add that secret/,
  )
  writeSigned(file, [openingLine])
  appendFileSync(file, `${withMac(text, 'x.y')}\n`)
  await assertDamage(/ was written with an unknown secret, but/)
  writeSigned(file, [openingLine])
  appendFileSync(file, `${'x'.repeat(64 * 1024)}\n`)
  await assertDamage(/ has no MAC\./)
  writeSigned(file, [openingLine])
  appendFileSync(file, `${'x'.repeat(64 * 1024 + 1)}\n`)
  await assertDamage(/ is too long\./)
})

test('files without MACs are refused, unless the operator accepts them', async t => {
  const { folder, journal } = open(t)
  await (await journal()).close()
  const unauthenticatedFile = join(folder, '2029-01-01-000000000000.ndjson')
  writeFileSync(unauthenticatedFile, `${JSON.stringify(link('a'))}\n`)
  await assert.rejects(read([unauthenticatedFile]), ({ message }: Error) =>
    message.startsWith(
      `${unauthenticatedFile} is of an older version and not authenticated. Nothing was changed. --unauth`,
    ),
  )
  assert.deepEqual(await read([unauthenticatedFile], { unauthenticated: true }), [link('a')])
  const names = namesIn(folder)
  writeFileSync(join(folder, 'a note'), '')
  assert.deepEqual(
    (await journalFiles(folder)).map(file => basename(file)),
    names,
  )
})

test('a folder without a journal, or that cannot be read, is named with the setting', async t => {
  const { path, remove } = temporaryFolder()
  t.after(remove)
  const help = 'Use the folder that KEYWAY_JOURNAL_DIR named when the journal was written.'
  await assert.rejects(journalFiles(path), { message: `There is no journal in ${path}. ${help}` })
  const missingFolder = join(path, 'nowhere')
  const message = (place: string) => `The journal at ${place} cannot be read (ENOENT). ${help}`
  await assert.rejects(journalFiles(missingFolder), { message: message(missingFolder) })
  const missingFile = join(path, '2030-01-01-gone.v2.ndjson')
  await assert.rejects(read([missingFile]), { message: message(missingFile) })
})
