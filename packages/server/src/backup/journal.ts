import { type FileHandle, mkdir, open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LedgerEntry } from '../billing/ledger.ts'
import { type Clock, type Instant, toRfc3339 } from '../clock.ts'
import { newId } from '../ids.ts'

/**
 * What a restored backup must not take back: ends, grants and charges. Ids, hashes and money only; no address,
 * name or secret, so the journal may be kept where backups are.
 */
export type JournalEntry =
  /** A process began to write here. What came before its first one is not in the journal. */
  | { type: 'opened'; at: Instant }
  /** How a key stands after a change that made it stricter. */
  | {
      type: 'api_key'
      at: Instant
      id: string
      revoked_at: Instant | null
      expires_at: Instant | null
      allowed_networks: string[]
    }
  | { type: 'user'; at: Instant; id: string; status: string }
  | { type: 'ledger'; at: Instant; entry: LedgerEntry }
  | { type: 'trial_credit'; at: Instant; address_hash: string; user_id: string }
  | {
      type: 'charge_authorization'
      at: Instant
      user_id: string
      app_id: string
      granted_at: Instant
      revoked_at: Instant | null
    }

export interface Journal {
  /** Resolves once the entries are on the disk. Those of many callers share one write. */
  append(entries: readonly JournalEntry[]): Promise<void>
  close(): Promise<void>
}

const SUFFIX = '.ndjson'

/** Appends to a file of this process's own, a new one each day. The folder is made with mode 0700. */
export async function openJournal(folder: string, clock: Clock): Promise<Journal> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const processId = newId(clock.now()).slice(-12)
  let day = ''
  let file: FileHandle | null = null
  let waiting: string[] = []
  let writing: Promise<void> = Promise.resolve()
  let next: Promise<void> | null = null
  // A journal says when it began, so that a restore can tell whether it knows everything since the backup.
  if (!(await readdir(folder)).some(name => name.endsWith(SUFFIX))) await fileOfToday()

  return {
    append(entries) {
      if (entries.length === 0) return Promise.resolve()
      waiting.push(...entries.map(entry => `${JSON.stringify(entry)}\n`))
      next ??= writing = writing.catch(() => {}).then(write)
      return next
    },
    async close() {
      await writing.catch(() => {})
      await file?.close()
      file = null
    },
  }

  async function write(): Promise<void> {
    next = null
    const texts = waiting
    waiting = []
    const handle = await fileOfToday()
    await handle.appendFile(texts.join(''))
    await handle.datasync()
  }

  async function fileOfToday(): Promise<FileHandle> {
    const now = clock.now()
    const today = toRfc3339(now).slice(0, 10)
    if (file && today === day) return file
    await file?.close()
    file = await open(join(folder, `${today}-${processId}${SUFFIX}`), 'a', 0o600)
    if (day === '') await file.appendFile(`${JSON.stringify({ type: 'opened', at: now })}\n`)
    day = today
    return file
  }
}

/** Every entry of all files in the folder, oldest first. A last line that a crash cut is left out. */
export async function readJournal(folder: string): Promise<JournalEntry[]> {
  const names = (await readdir(folder)).filter(name => name.endsWith(SUFFIX))
  const entries: JournalEntry[] = []
  for (const name of names) {
    const lines = (await readFile(join(folder, name), 'utf8')).split('\n')
    lines.pop()
    for (const line of lines) entries.push(JSON.parse(line) as JournalEntry)
  }
  return entries.sort((a, b) => a.at - b.at)
}
