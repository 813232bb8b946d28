import type { JournalDigest } from '../backup/journal-digest.ts'

/** The number of subjects in the journal by the outcome of their replay. */
export interface ReplayCount {
  found: number
  /** The database had lost the change, which is re-applied. */
  replayed: number
  /** The database has the change, or a newer one. */
  standing: number
  /** The database has no such row. */
  gone: number
  /** It could not be re-applied; see `left`. */
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

/** A change that the operator must decide on: a charge that exceeds the balance, or networks of unknown date. */
export interface UnresolvedChange {
  kind: ReplayKind
  id: string
  reason: 'not_covered' | 'networks_undated'
}

export interface ReplayReport {
  entries: number
  /** Description of missing parts of the journal, if the operator chose to ignore them. */
  missing: string | null
  /** Files without a closing line, which may be truncated. */
  openEnds: JournalDigest['openEnds']
  counts: Record<ReplayKind, ReplayCount>
  left: UnresolvedChange[]
}
