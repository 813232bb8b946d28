import { DAY, type Instant, toRfc3339 } from '../clock.ts'
import { OperatorError } from '../operator-error.ts'
import type { UserRole, UserStatus } from '../users/user.ts'
import { type Trust, UNAUTHENTICATED_RISK } from './authentication.ts'
import type { EntryOf, JournalEntry } from './journal-entry.ts'
import { createCompleteness, dayOf, isAuthenticated, readJournalLines } from './journal-reader.ts'

/**
 * The final state of every subject that may have several entries in a journal; the order of the lines does not matter.
 * Subjects with one entry (sessions, links, invitations, ledger entries, trial credits) are not included: there may be
 * millions, so a restore reads the journal a second time, as a stream.
 */
export interface JournalDigest {
  /** Number of entries from `DigestOptions.since` on, without `opened` and `closed`. */
  entries: number
  /** By key id. */
  keys: Map<string, KeyDigest>
  /** By user id. */
  users: Map<string, UserDigest>
  /** The secrets of each app according to its last entry, by app id. */
  appSecrets: Map<string, EntryOf<'app_secrets'>>
  /** Charge authorisations by user and app. */
  authorizations: Map<string, EntryOf<'charge_authorization'>>
  /** The last entry of each consent, by user and app. */
  consents: Map<string, EntryOf<'consent'>>
  /** The last entry with policies; null if there is none. */
  policies: EntryOf<'policies'> | null
  /** When the journal begins; null if no file records that. */
  beginsAt: Instant | null
  /**
   * Authenticated files of the days from `DigestOptions.since` on that do not end with a `closed` entry, with the time
   * of their last entry: later entries may be missing.
   */
  openEnds: { file: string; at: Instant }[]
  /**
   * Names a missing or truncated file of a journal that the operator accepted as incomplete; null if it is complete.
   */
  missing: string | null
}

export interface KeyDigest {
  /** The earliest revocation of all entries, since a later entry never undoes it; null if no entry has one. */
  revokedAt: Instant | null
  /** The earliest expiry of all entries, since a later entry never postpones it; null if no entry has one. */
  expiresAt: Instant | null
  /** The networks in the last entry. */
  allowedNetworks: string[]
  /** Time of the last entry. */
  at: Instant
}

export interface UserDigest {
  status: UserStatus
  /** Time of the entry that `status` is from: the last one, or the one that recorded the deletion. */
  at: Instant
  /** The role in the last entry that has one; null if none has, as in journals of older versions. */
  role: { role: UserRole; at: Instant } | null
  /**
   * The time of the account's deletion in the last entry that has this field, which older versions did not write; null
   * if no entry has the field. `deletesAt` is null if no deletion is due: none was requested, it was cancelled, or it
   * was carried out.
   */
  deletion: { deletesAt: Instant | null; at: Instant } | null
}

export interface DigestOptions {
  trust: Trust
  /** The id of the service; a journal of another service is refused. Null if unknown: then this is not checked. */
  serviceId: string | null
  /** Entries before this instant are verified and skipped. */
  since?: Instant
  /** Called after every 1000 entries that count for `JournalDigest.entries`, with their number so far. */
  progress?: (entries: number) => void
}

/**
 * Reads and verifies the whole journal once, so that an invalid line is found before anything is changed.
 *
 * @param files sorted by name
 * @throws OperatorError if a file cannot be read, a line is invalid, or the journal is of another `serviceId`; unless
 * `Trust.unauthenticated` accepts it, also if a file has no MACs or the journal is incomplete
 */
export async function digestJournal(
  files: readonly string[],
  { trust, serviceId, since = 0, progress = () => {} }: DigestOptions,
): Promise<JournalDigest> {
  const digest = emptyDigest()
  const completeness = createCompleteness()
  for await (const line of readJournalLines(files, trust)) {
    const { entry, file } = line
    completeness.add(line)
    if (entry.type === 'opened') {
      refuseOtherService(entry, file, serviceId)
      digest.beginsAt = earlierOf(digest.beginsAt, entry.at)
    }
    if (!isChange(entry, since)) continue
    if (++digest.entries % 1000 === 0) progress(digest.entries)
    addEntry(digest, entry)
  }
  // A file has the entries of one day only, so files of earlier days do not matter.
  digest.openEnds = completeness.openEnds().filter(({ file }) => dayOf(file) >= dayAt(since))
  digest.missing = completeness.findMissing(firstNeededDay(files, since))
  if (digest.missing && !trust.unauthenticated)
    throw new OperatorError(
      `The journal is incomplete: ${digest.missing}. Nothing was changed. Restore the original file. ${UNAUTHENTICATED_RISK}`,
    )
  return digest
}

/** Whether the entry is a change (not `opened` or `closed`) that was made at or after `since`. */
export function isChange(entry: JournalEntry, since: Instant): boolean {
  return entry.type !== 'opened' && entry.type !== 'closed' && entry.at >= since
}

/**
 * The files to read if only entries from `since` on are needed. Files of earlier days only show when the journal begins
 * and whether it is complete, so those without MACs are left out unless the operator accepts unauthenticated files.
 */
export function filesNeeded(files: readonly string[], since: Instant, { unauthenticated }: Trust): string[] {
  return files.filter(file => unauthenticated || isAuthenticated(file) || dayOf(file) >= dayAt(since))
}

/**
 * The day from which on no file may be missing: that of `since`, or that of the oldest file with MACs if it is later:
 * operators may delete the oldest days as a whole.
 */
function firstNeededDay(files: readonly string[], since: Instant): string {
  const oldestDay = dayOf(files.find(isAuthenticated) ?? '')
  return [oldestDay, dayAt(since)].sort()[1]!
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
    consents: new Map(),
    policies: null,
    beginsAt: null,
    openEnds: [],
    missing: null,
  }
}

function refuseOtherService(entry: EntryOf<'opened'>, file: string, serviceId: string | null): void {
  if (serviceId === null || entry.instance === undefined || entry.instance === serviceId) return
  throw new OperatorError(
    `${file} is the journal of another service (${entry.instance}; this one is ${serviceId}). Nothing was changed. Use the journal of this service, or remove that file from the folder.`,
  )
}

function addEntry(digest: JournalDigest, entry: JournalEntry): void {
  if (entry.type === 'api_key') addKey(digest, entry)
  if (entry.type === 'user') addUser(digest, entry)
  if (entry.type === 'app_secrets') keepLast(digest.appSecrets, entry.id, entry)
  if (entry.type === 'policies' && entry.changed_at >= (digest.policies?.changed_at ?? 0))
    digest.policies = entry
  if (entry.type === 'charge_authorization')
    keepLast(digest.authorizations, `${entry.user_id} ${entry.app_id}`, entry)
  if (entry.type === 'consent') keepLast(digest.consents, `${entry.user_id} ${entry.app_id}`, entry)
}

function addKey({ keys }: JournalDigest, entry: EntryOf<'api_key'>): void {
  const existingDigest = keys.get(entry.id)
  const isLast = !existingDigest || entry.at >= existingDigest.at
  keys.set(entry.id, {
    revokedAt: earlierOf(existingDigest?.revokedAt ?? null, entry.revoked_at),
    expiresAt: earlierOf(existingDigest?.expiresAt ?? null, entry.expires_at),
    allowedNetworks: isLast ? entry.allowed_networks : existingDigest.allowedNetworks,
    at: isLast ? entry.at : existingDigest.at,
  })
}

function addUser(
  { users }: JournalDigest,
  { id, status, role, deletes_at: deletesAt, at }: EntryOf<'user'>,
): void {
  const existingDigest = users.get(id)
  const lastRole =
    role && at >= (existingDigest?.role?.at ?? at) ? { role, at } : (existingDigest?.role ?? null)
  const lastDeletion =
    deletesAt !== undefined && at >= (existingDigest?.deletion?.at ?? at)
      ? { deletesAt, at }
      : (existingDigest?.deletion ?? null)
  const roleAndDeletion = { role: lastRole, deletion: lastDeletion }
  // A deletion is final, whatever the time of the other entries.
  const isLastStatus =
    !existingDigest ||
    (existingDigest.status !== 'deleted' && (status === 'deleted' || at >= existingDigest.at))
  users.set(id, isLastStatus ? { status, at, ...roleAndDeletion } : { ...existingDigest, ...roleAndDeletion })
}

function keepLast<Entry extends { at: Instant }>(map: Map<string, Entry>, name: string, entry: Entry): void {
  const existingEntry = map.get(name)
  if (!existingEntry || entry.at >= existingEntry.at) map.set(name, entry)
}

/** The earlier of two instants; null means never. */
export function earlierOf(left: Instant | null, right: Instant | null): Instant | null {
  return left === null || right === null ? (left ?? right) : Math.min(left, right)
}
