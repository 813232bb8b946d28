import type { Instant } from '../clock.ts'
import type { UserStatus } from '../users/user.ts'
import type { EntryOf, JournalEntry } from './journal-entry.ts'
import { JournalDamaged, readJournalLines } from './journal-reader.ts'

/** How the things that a journal tells of more than once stand in the end, whatever order its lines are read in. */
export interface JournalDigest {
  entries: number
  keys: Map<string, KeyDigest>
  users: Map<string, { status: UserStatus; at: Instant }>
  /** By user and app. */
  authorizations: Map<string, EntryOf<'charge_authorization'>>
}

export interface KeyDigest {
  /** A key that was revoked or came to expire sooner stays so, whatever was said of it later. */
  revokedAt: Instant | null
  expiresAt: Instant | null
  /** Those of the last entry, which is of `at`. */
  allowedNetworks: string[]
  at: Instant
}

/**
 * Reads the whole journal once, so that a line that is wrong is found before anything is changed.
 *
 * @param progress told now and then how many entries are read
 * @throws JournalDamaged where a line is wrong, or the journal is not of this `instance`
 */
export async function digestJournal(
  files: readonly string[],
  instance: string,
  progress: (entries: number) => void = () => {},
): Promise<JournalDigest> {
  const digest: JournalDigest = { entries: 0, keys: new Map(), users: new Map(), authorizations: new Map() }
  for await (const { entry, file } of readJournalLines(files)) {
    if (entry.type === 'opened') {
      refuseForeign(entry, file, instance)
      continue
    }
    if (++digest.entries % 1000 === 0) progress(digest.entries)
    add(digest, entry)
  }
  return digest
}

function refuseForeign(entry: EntryOf<'opened'>, file: string, instance: string): void {
  if (entry.instance === undefined || entry.instance === instance) return
  throw new JournalDamaged(
    `${file} is the journal of another service (${entry.instance}; this one is ${instance}). Nothing was changed. Give this service's own journal, or take that file out of the folder.`,
  )
}

function add(digest: JournalDigest, entry: JournalEntry): void {
  if (entry.type === 'api_key') addKey(digest, entry)
  if (entry.type === 'user') addUser(digest, entry)
  if (entry.type === 'charge_authorization') addAuthorization(digest, entry)
}

function addKey({ keys }: JournalDigest, entry: EntryOf<'api_key'>): void {
  const known = keys.get(entry.id)
  const isLast = !known || entry.at >= known.at
  keys.set(entry.id, {
    revokedAt: earlier(known?.revokedAt ?? null, entry.revoked_at),
    expiresAt: earlier(known?.expiresAt ?? null, entry.expires_at),
    allowedNetworks: isLast ? entry.allowed_networks : known.allowedNetworks,
    at: isLast ? entry.at : known.at,
  })
}

function addUser({ users }: JournalDigest, { id, status, at }: EntryOf<'user'>): void {
  const known = users.get(id)
  if (known?.status === 'deleted') return
  if (!known || status === 'deleted' || at >= known.at) users.set(id, { status, at })
}

function addAuthorization({ authorizations }: JournalDigest, entry: EntryOf<'charge_authorization'>): void {
  const name = `${entry.user_id} ${entry.app_id}`
  const known = authorizations.get(name)
  if (!known || entry.at >= known.at) authorizations.set(name, entry)
}

/** Null is never. */
export function earlier(left: Instant | null, right: Instant | null): Instant | null {
  return left === null || right === null ? (left ?? right) : Math.min(left, right)
}
