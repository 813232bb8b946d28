import type { JournalDigest } from '../backup/journal-digest.ts'

/** Counts the changes of one kind in the journal by the outcome of their replay. */
export interface ReplayCount {
  found: number
  /** Changes that the database had lost and that were re-applied. */
  replayed: number
  /** Changes that the database still has, and those that a newer change has replaced. */
  standing: number
  /** Changes of rows that no longer exist. */
  gone: number
  /** Changes that could not be re-applied; `ReplayReport.left` lists them. */
  left: number
}

export type ReplayOutcome = Exclude<keyof ReplayCount, 'found'>

export const REPLAY_KINDS = [
  'api_keys',
  'users',
  'roles',
  'deletions',
  'app_secrets',
  'sessions',
  'magic_links',
  'invitations',
  'charge_authorizations',
  'consents',
  'policies',
  'ledger_entries',
  'trial_credits',
] as const
export type ReplayKind = (typeof REPLAY_KINDS)[number]

/**
 * A change that was not re-applied, and that the operator must decide on: a ledger entry that the balance does not
 * cover, or networks of a key that may be older than those in the database.
 */
export interface UnresolvedChange {
  kind: ReplayKind
  id: string
  reason: 'not_covered' | 'networks_undated'
}

export interface ReplayReport {
  entries: number
  /** Description of missing parts of the journal, if the operator chose to ignore them. */
  missing: string | null
  /** Files without a `closed` entry, which may be truncated. */
  openEnds: JournalDigest['openEnds']
  counts: Record<ReplayKind, ReplayCount>
  left: UnresolvedChange[]
}
