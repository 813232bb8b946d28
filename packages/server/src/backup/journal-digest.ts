import { DAY, type Instant, toRfc3339 } from '../clock.ts'
import { OperatorError } from '../operator-error.ts'
import type { UserRole, UserStatus } from '../users/user.ts'
import { type Trust, UNAUTHENTICATED_MEANS } from './authentication.ts'
import type { EntryOf, JournalEntry } from './journal-entry.ts'
import { createCompleteness, dayOf, isAuthenticated, readJournalLines } from './journal-reader.ts'

/**
 * The final state of everything that a journal may mention more than once, whatever order its lines are read in.
 * Facts that are mentioned once (sessions, links, charges, credits) are read again in a stream, since there may be
 * millions.
 */
export interface JournalDigest {
  /** Besides those that only begin and end files. */
  entries: number
  keys: Map<string, KeyDigest>
  users: Map<string, UserDigest>
  /** By app: every secret that it had in the end. */
  appSecrets: Map<string, EntryOf<'app_secrets'>>
  /** By user and app. */
  authorizations: Map<string, EntryOf<'charge_authorization'>>
  /** When the journal begins; null where no file says. */
  begins: Instant | null
  /** Files without a closing line. What came after their last entry, if anything did, is unknown. */
  openEnds: { file: string; at: Instant }[]
  /** What the journal lacks, where the operator chose to go on without it. */
  missing: string | null
}

export interface KeyDigest {
  /** A key that was revoked or came to expire sooner stays so, whatever was said of it later. */
  revokedAt: Instant | null
  expiresAt: Instant | null
  /** Those of the last entry, which is of `at`. */
  allowedNetworks: string[]
  at: Instant
}

export interface UserDigest {
  status: UserStatus
  /** Of the last status. */
  at: Instant
  /** Of the last entry that has one; older versions noted none. */
  role: { role: UserRole; at: Instant } | null
}

export interface DigestOptions {
  trust: Trust
  /** The service that it must be of; null where that is not known. */
  instance: string | null
  /** Entries before this are verified and left out. */
  since?: Instant
  /** Called from time to time with the number of entries that are read. */
  progress?: (entries: number) => void
}

/**
 * Reads and verifies the whole journal once, so that a line that is wrong is found before anything is changed.
 *
 * @throws OperatorError where a line is wrong, or the journal is incomplete or not of this `instance`
 */
export async function digestJournal(
  files: readonly string[],
  { trust, instance, since = 0, progress = () => {} }: DigestOptions,
): Promise<JournalDigest> {
  const digest = emptyDigest()
  const completeness = createCompleteness()
  for await (const line of readJournalLines(files, trust)) {
    const { entry, file } = line
    completeness.note(line)
    if (entry.type === 'opened') {
      refuseForeign(entry, file, instance)
      digest.begins = earlier(digest.begins, entry.at)
    }
    if (entry.type === 'opened' || entry.type === 'closed' || entry.at < since) continue
    if (++digest.entries % 1000 === 0) progress(digest.entries)
    add(digest, entry)
  }
  // A file has the entries of its day only, so an old one cannot lack anything that is wanted.
  digest.openEnds = completeness.openEnds().filter(({ file }) => dayOf(file) >= dayAt(since))
  digest.missing = completeness.whatIsMissing(neededSince(files, since))
  if (digest.missing && !trust.unauthenticated)
    throw new OperatorError(
      `The journal is incomplete: ${digest.missing}. Nothing was changed. Put the file back as it was. ${UNAUTHENTICATED_MEANS}`,
    )
  return digest
}

/**
 * What a journal needs of its files, when only what happened `since` matters. Files of older versions that lie before
 * that day are left out unread: nothing in them could be believed, and nothing in them is wanted.
 */
export function filesNeeded(files: readonly string[], since: Instant, { unauthenticated }: Trust): string[] {
  return files.filter(file => unauthenticated || isAuthenticated(file) || dayOf(file) >= dayAt(since))
}

/** Whole days of old files may be deleted, the oldest first; of the days that are left none may lack a file. */
function neededSince(files: readonly string[], since: Instant): string {
  const oldest = files.filter(isAuthenticated).map(dayOf).sort()[0] ?? ''
  return since > 0 && dayAt(since) > oldest ? dayAt(since) : oldest
}

function dayAt(instant: Instant): string {
  return toRfc3339(instant - (instant % DAY)).slice(0, 10)
}

function emptyDigest(): JournalDigest {
  return {
    entries: 0,
    keys: new Map(),
    users: new Map(),
    appSecrets: new Map(),
    authorizations: new Map(),
    begins: null,
    openEnds: [],
    missing: null,
  }
}

function refuseForeign(entry: EntryOf<'opened'>, file: string, instance: string | null): void {
  if (instance === null || entry.instance === undefined || entry.instance === instance) return
  throw new OperatorError(
    `${file} is the journal of another service (${entry.instance}; this one is ${instance}). Nothing was changed. Give this service's own journal, or take that file out of the folder.`,
  )
}

function add(digest: JournalDigest, entry: JournalEntry): void {
  if (entry.type === 'api_key') addKey(digest, entry)
  if (entry.type === 'user') addUser(digest, entry)
  if (entry.type === 'app_secrets') keepLast(digest.appSecrets, entry.id, entry)
  if (entry.type === 'charge_authorization')
    keepLast(digest.authorizations, `${entry.user_id} ${entry.app_id}`, entry)
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

function addUser({ users }: JournalDigest, { id, status, role, at }: EntryOf<'user'>): void {
  const known = users.get(id)
  const lastRole = role && at >= (known?.role?.at ?? at) ? { role, at } : (known?.role ?? null)
  const isLast = !known || (known.status !== 'deleted' && (status === 'deleted' || at >= known.at))
  users.set(id, isLast ? { status, at, role: lastRole } : { ...known, role: lastRole })
}

function keepLast<Entry extends { at: Instant }>(map: Map<string, Entry>, name: string, entry: Entry): void {
  const known = map.get(name)
  if (!known || entry.at >= known.at) map.set(name, entry)
}

/** Null is never. */
export function earlier(left: Instant | null, right: Instant | null): Instant | null {
  return left === null || right === null ? (left ?? right) : Math.min(left, right)
}
