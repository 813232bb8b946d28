import type { LedgerEntry } from '../billing/ledger.ts'
import type { Instant } from '../clock.ts'
import type { SetPolicies } from '../policies/policy.ts'
import { hmac } from '../secrets.ts'
import type { SessionEnd } from '../sessions/session.ts'
import type { UserRole, UserStatus } from '../users/user.ts'

/**
 * Facts that must survive the restore of a backup and the loss of the database's last transactions: endings, grants
 * and charges. Contains only ids, hashes and amounts; no address, name or secret, so that it may be stored with the
 * backups.
 */
export type JournalEntry =
  /** First line of a file. The earliest one marks the beginning of the journal. */
  | {
      type: 'opened'
      at: Instant
      /** The id of the service; absent in files of older versions. */
      instance?: string
      /** The name of this file, so that it cannot replace another. */
      file?: string
      /** The newest other files at that time, with the length of their complete lines in bytes. */
      beside?: { file: string; bytes: number }[]
    }
  /** Last line of a file after a regular shutdown or the change to the next day's file. */
  | { type: 'closed'; at: Instant }
  /** The state of a key after a change that restricted it. */
  | {
      type: 'api_key'
      at: Instant
      id: string
      revoked_at: Instant | null
      expires_at: Instant | null
      allowed_networks: string[]
    }
  /**
   * The state of an account after its status, its role or the time of its deletion changed; older versions did not write
   * the latter two.
   */
  | {
      type: 'user'
      at: Instant
      id: string
      status: UserStatus
      role?: UserRole
      deletes_at?: Instant | null
    }
  /** All secret hashes of an app after one was added or removed, or the app was. */
  | {
      type: 'app_secrets'
      at: Instant
      id: string
      secrets: { hash: string; created_at: Instant }[]
      removed_at?: Instant
    }
  | { type: 'session'; at: Instant; id: string; ended_by: SessionEnd }
  /** A link was used, or ended because another link of its address was. */
  | { type: 'magic_link'; at: Instant; id: string }
  /** An invitation was accepted or revoked. */
  | { type: 'invitation'; at: Instant; id: string }
  | { type: 'ledger'; at: Instant; entry: JournaledLedgerEntry }
  | { type: 'trial_credit'; at: Instant; address_hash: string; user_id: string }
  | {
      type: 'charge_authorization'
      at: Instant
      user_id: string
      app_id: string
      granted_at: Instant
      revoked_at: Instant | null
    }
  | {
      type: 'consent'
      at: Instant
      id: string
      user_id: string
      app_id: string
      scopes: readonly string[]
      granted_at: Instant
      revoked_at: Instant | null
    }
  /** All policies that are set, after a change. */
  | { type: 'policies'; at: Instant; policies: SetPolicies; changed_at: Instant }

/** Older versions wrote no `keyId` and `lineageId`. */
export type JournaledLedgerEntry = Omit<LedgerEntry, NewInLedger> & Partial<Pick<LedgerEntry, NewInLedger>>
type NewInLedger = 'keyId' | 'lineageId'

export function toLedgerEntry({
  keyId = null,
  lineageId = null,
  ...entry
}: JournaledLedgerEntry): LedgerEntry {
  return { ...entry, keyId, lineageId }
}

export type EntryOf<Type extends JournalEntry['type']> = Extract<JournalEntry, { type: Type }>

/**
 * The id of a service. It survives restores, a change of the engine and rotations of `KEYWAY_SECRET`, since it is
 * derived from the address pepper, and does not reveal the pepper.
 */
export function instanceOf(addressPepper: Buffer): string {
  return hmac(addressPepper, 'keyway instance').toString('hex').slice(0, 16)
}

/** Parses one line of a journal; `wrong` says why it is invalid. */
export function parseEntry(line: string): JournalEntry | { wrong: string } {
  const value = parsed(line)
  if (!isRecord(value) || typeof value.type !== 'string') return { wrong: 'is not a journal entry' }
  const shape = Object.hasOwn(SHAPES, value.type)
    ? (SHAPES[value.type as JournalEntry['type']] as Shape)
    : undefined
  if (!shape) return { wrong: `has an entry ${JSON.stringify(value.type)}, which this version does not know` }
  const missing = Object.entries({ at: instant, ...shape }).find(([name, fits]) => !fits(value[name]))
  if (missing) return { wrong: `has an entry "${value.type}" without a valid "${missing[0]}"` }
  return value as unknown as JournalEntry
}

type Check = (value: unknown) => boolean
type Shape = Record<string, Check>

const text: Check = value => typeof value === 'string' && value !== ''
const whole: Check = value => Number.isSafeInteger(value)
/** Within the range of Date. */
const instant: Check = value => whole(value) && (value as number) >= 0 && (value as number) <= 8.64e15
const orNull =
  (check: Check): Check =>
  value =>
    value === null || check(value)
const optional =
  (check: Check): Check =>
  value =>
    value === undefined || check(value)
const oneOf =
  (...values: string[]): Check =>
  value =>
    values.includes(value as string)
const listOf =
  (check: Check): Check =>
  value =>
    Array.isArray(value) && value.every(check)
const list = listOf(value => typeof value === 'string')
const objectOf =
  (shape: Shape): Check =>
  value =>
    isRecord(value) && Object.entries(shape).every(([name, fits]) => fits(value[name]))

const LEDGER_ENTRY: Shape = {
  id: text,
  userId: text,
  kind: text,
  amount: whole,
  balanceAfter: whole,
  appId: orNull(text),
  description: value => typeof value === 'string',
  cause: text,
  createdAt: instant,
  keyId: optional(orNull(text)),
  lineageId: optional(orNull(text)),
}

const SHAPES: { [Type in JournalEntry['type']]: Shape } = {
  opened: {
    instance: optional(text),
    file: optional(text),
    beside: optional(listOf(objectOf({ file: text, bytes: instant }))),
  },
  closed: {},
  api_key: { id: text, revoked_at: orNull(instant), expires_at: orNull(instant), allowed_networks: list },
  user: {
    id: text,
    status: oneOf('active', 'suspended', 'deleted'),
    role: optional(oneOf('user', 'support', 'admin')),
    deletes_at: optional(orNull(instant)),
  },
  app_secrets: {
    id: text,
    secrets: listOf(objectOf({ hash: text, created_at: instant })),
    removed_at: optional(instant),
  },
  session: { id: text, ended_by: oneOf('logout', 'reuse', 'revoked', 'suspended', 'deleted') },
  magic_link: { id: text },
  invitation: { id: text },
  ledger: { entry: objectOf(LEDGER_ENTRY) },
  trial_credit: { address_hash: text, user_id: text },
  policies: { policies: isRecord, changed_at: instant },
  consent: {
    id: text,
    user_id: text,
    app_id: text,
    scopes: list,
    granted_at: instant,
    revoked_at: orNull(instant),
  },
  charge_authorization: { user_id: text, app_id: text, granted_at: instant, revoked_at: orNull(instant) },
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
