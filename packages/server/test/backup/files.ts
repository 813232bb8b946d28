import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { openJournal } from '../../src/backup/journal.ts'
import type { JournalEntry } from '../../src/backup/journal-entry.ts'
import { createClock } from '../../src/clock.ts'
import { createSecrets } from '../../src/secrets.ts'
import { NODE_SECRET } from '../support/nodes.ts'

const SECRETS = createSecrets([Buffer.from(NODE_SECRET, 'base64')])

/** Adds a file to a journal, as written by a process of this service with the tests' secret. */
export async function writeJournal(
  folder: string,
  serviceId: string,
  entries: readonly JournalEntry[],
  secrets = SECRETS,
): Promise<string> {
  const namesBefore = new Set(namesIn(folder))
  const journal = await openJournal(folder, { clock: createClock(), secrets, serviceId })
  await journal.append(entries)
  await journal.close()
  return namesIn(folder).find(name => !namesBefore.has(name))!
}

export function namesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(each => each.isFile())
    .map(({ name }) => name)
    .sort()
}

/** The lines of a file, each with its line feed. */
export function linesOf(path: string): string[] {
  return readFileSync(path, 'utf8').split(/(?<=\n)/)
}

/**
 * Changes a backup's lines as an attacker without the secret could: recomputes the checksum of format 1, but keeps the
 * MAC of format 2.
 */
export function changeBackup(file: string, target: string, change: (lines: string[]) => string[]): void {
  const changedLines = change(gunzipSync(readFileSync(file)).toString().trimEnd().split('\n'))
  const lastLine = changedLines.pop()!
  const checksum = createHash('sha256')
    .update(changedLines.map(line => `${line}\n`).join(''))
    .digest('hex')
  const text = [...changedLines, lastLine.replace(/"sha256":"\w+"/, `"sha256":"${checksum}"`)].join('\n')
  writeFileSync(target, gzipSync(`${text}\n`))
}

/** Rewrites a backup in the old format without MACs. */
export function toOldBackup(file: string, target: string): void {
  changeBackup(file, target, ([header, ...rows]) => {
    const { file: _, service: __, ...old } = JSON.parse(header!)
    const [last = ''] = rows.splice(-1)
    const { counts } = JSON.parse(last.split('\t')[0]!)
    return [
      JSON.stringify({ ...old, keyway_backup: 1 }),
      ...rows,
      JSON.stringify({ end: true, counts, sha256: '0' }),
    ]
  })
}

/** Writes a journal in the old format without MACs, in one file of that day. */
export function writeOldJournal(folder: string, day: string, entries: readonly object[]): string {
  const file = join(folder, `${day}-000000000000.ndjson`)
  writeFileSync(file, entries.map(entry => `${JSON.stringify(entry)}\n`).join(''))
  return file
}
