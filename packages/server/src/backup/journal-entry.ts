import type { LedgerEntry } from '../billing/ledger.ts'
import type { Instant } from '../clock.ts'
import type { PolicyOverrides } from '../policies/policy.ts'
import { hmac } from '../secrets.ts'
import type { SessionEndCause } from '../sessions/session.ts'
import type { UserRole, UserStatus } from '../users/user.ts'

/**
 * Facts that must survive the restore of a backup and the loss of the database's last transactions: endings, grants and
 * charges. Contains ids, hashes, amounts, policies, the networks of keys, the scopes of consents, and the descriptions
 * of ledger entries, but no mail address, name or secret, so that it may be stored with the backups.
 */
export type JournalEntry =
  /** The first line of a file. The earliest of these entries marks the beginning of the journal. */
  | {
      type: 'opened'
      at: Instant
      /** The id of the service; absent in files of older versions. */
      instance?: string
      /** The name of this file, so that it cannot replace another; absent in files of older versions. */
      file?: string
      /**
       * The newest other files when this file was created, each with the total length of its complete lines in bytes,
       * so that missing and truncated files are noticed; absent in files of older versions.
       */
      beside?: { file: string; bytes: number }[]
    }
  /** The last line of a file, written at a regular shutdown or before the next day's file. */
  | { type: 'closed'; at: Instant }
  /** The state of a key after it was revoked or replaced, or its expiry or allowed networks changed. */
  | {
      type: 'api_key'
      at: Instant
      id: string
      revoked_at: Instant | null
      expires_at: Instant | null
      allowed_networks: string[]
    }
  /**
   * The state of an account after its status, role, mail address or time of deletion changed. Older versions wrote
   * neither `role` nor `deletes_at`.
   */
  | {
      type: 'user'
      at: Instant
      id: string
      status: UserStatus
      role?: UserRole
      deletes_at?: Instant | null
    }
  /** The hashes of all secrets of an app, after a secret was added or removed, or the app was removed. */
  | {
      type: 'app_secrets'
      at: Instant
      id: string
      secrets: { hash: string; created_at: Instant }[]
      removed_at?: Instant
    }
  | { type: 'session'; at: Instant; id: string; ended_by: SessionEndCause }
  /**
   * A sign-in link was used, or ended without use: another link to its address was used, an account with this address
   * was deleted, or an account's address was changed from or to it.
   */
  | { type: 'magic_link'; at: Instant; id: string }
  /** An invitation was accepted, revoked, or replaced by a newer one. */
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
  /** All policies that are set, after one of them changed. */
  | { type: 'policies'; at: Instant; policies: PolicyOverrides; changed_at: Instant }

/** Older versions wrote neither `keyId` nor `lineageId`. */
export type JournaledLedgerEntry = Omit<LedgerEntry, FieldAddedLater> &
  Partial<Pick<LedgerEntry, FieldAddedLater>>
type FieldAddedLater = 'keyId' | 'lineageId'

export function toLedgerEntry({
  keyId = null,
  lineageId = null,
  ...entry
}: JournaledLedgerEntry): LedgerEntry {
  return { ...entry, keyId, lineageId }
}

export type EntryOf<Type extends JournalEntry['type']> = Extract<JournalEntry, { type: Type }>

/**
 * The id of a service. It survives restores, a change of the database engine and rotations of `KEYWAY_SECRET`, since it
 * is derived from the address pepper, and does not reveal the pepper.
 */
export function serviceIdOf(addressPepper: Buffer): string {
  return hmac(addressPepper, 'keyway instance').toString('hex').slice(0, 16)
}

/** Parses one line of a journal, or says why it is invalid. */
export function parseEntry(line: string): JournalEntry | { problem: string } {
  const value = parseJson(line)
  if (!isRecord(value) || typeof value.type !== 'string') return { problem: 'is not a journal entry' }
  const shape = Object.hasOwn(SHAPES, value.type)
    ? (SHAPES[value.type as JournalEntry['type']] as Shape)
    : undefined
  if (!shape)
    return { problem: `has an entry ${JSON.stringify(value.type)}, which this version does not know` }
  const invalidField = Object.entries({ at: instant, ...shape }).find(([name, check]) => !check(value[name]))
  if (invalidField) return { problem: `has an entry "${value.type}" without a valid "${invalidField[0]}"` }
  return value as unknown as JournalEntry
}

type Check = (value: unknown) => boolean
type Shape = Record<string, Check>

const nonEmptyString: Check = value => typeof value === 'string' && value !== ''
const integer: Check = value => Number.isSafeInteger(value)
const count: Check = value => integer(value) && (value as number) >= 0
/** Milliseconds since 1970, in the range of Date. */
const instant: Check = value => count(value) && (value as number) <= 8.64e15
const nullable =
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
const stringList = listOf(value => typeof value === 'string')
const objectOf =
  (shape: Shape): Check =>
  value =>
    isRecord(value) && Object.entries(shape).every(([name, check]) => check(value[name]))

const LEDGER_ENTRY_SHAPE: Shape = {
  id: nonEmptyString,
  userId: nonEmptyString,
  kind: nonEmptyString,
  amount: integer,
  balanceAfter: integer,
  appId: nullable(nonEmptyString),
  description: value => typeof value === 'string',
  cause: nonEmptyString,
  createdAt: instant,
  keyId: optional(nullable(nonEmptyString)),
  lineageId: optional(nullable(nonEmptyString)),
}

const SHAPES: { [Type in JournalEntry['type']]: Shape } = {
  opened: {
    instance: optional(nonEmptyString),
    file: optional(nonEmptyString),
    beside: optional(listOf(objectOf({ file: nonEmptyString, bytes: count }))),
  },
  closed: {},
  api_key: {
    id: nonEmptyString,
    revoked_at: nullable(instant),
    expires_at: nullable(instant),
    allowed_networks: stringList,
  },
  user: {
    id: nonEmptyString,
    status: oneOf('active', 'suspended', 'deleted'),
    role: optional(oneOf('user', 'support', 'admin')),
    deletes_at: optional(nullable(instant)),
  },
  app_secrets: {
    id: nonEmptyString,
    secrets: listOf(objectOf({ hash: nonEmptyString, created_at: instant })),
    removed_at: optional(instant),
  },
  session: { id: nonEmptyString, ended_by: oneOf('logout', 'reuse', 'revoked', 'suspended', 'deleted') },
  magic_link: { id: nonEmptyString },
  invitation: { id: nonEmptyString },
  ledger: { entry: objectOf(LEDGER_ENTRY_SHAPE) },
  trial_credit: { address_hash: nonEmptyString, user_id: nonEmptyString },
  policies: { policies: isRecord, changed_at: instant },
  consent: {
    id: nonEmptyString,
    user_id: nonEmptyString,
    app_id: nonEmptyString,
    scopes: stringList,
    granted_at: instant,
    revoked_at: nullable(instant),
  },
  charge_authorization: {
    user_id: nonEmptyString,
    app_id: nonEmptyString,
    granted_at: instant,
    revoked_at: nullable(instant),
  },
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
