import type { AuditEvent } from '../audit/audit-event.ts'
import type { LedgerEntry } from '../billing/ledger.ts'
import type { Instant } from '../clock.ts'
import type { Caller } from '../network.ts'
import type { StoredPolicies } from '../policies/policy.ts'
import type { SecurityEvent } from '../security-events/security-event.ts'
import type { Ending } from './ending.ts'

/** A change that a transaction must record or publish besides writing the changed rows. */
export type Fact =
  /** A row in the table of endings, which hubs and the revocation feed read. */
  | { type: 'ending'; ending: Ending }
  /** Published to other nodes, and recorded in the journal with the subject's state as it is after the commit. */
  | { type: 'changed'; kind: Ending['kind']; id: string; userId: string }
  /** Shown to the owner, and logged. */
  | { type: 'security_event'; event: SecurityEvent }
  /** Logged. */
  | { type: 'audit'; event: AuditEvent }
  // The following facts are recorded in the journal; a charge among the `ledger` facts can also cause the webhook event
  // `balance.low`.
  | { type: 'app_secrets'; id: string }
  | { type: 'magic_link'; id: string; at: Instant }
  /** The invitation was accepted, revoked, or replaced by a newer one. */
  | { type: 'invitation'; id: string; at: Instant }
  | { type: 'ledger'; entry: LedgerEntry }
  | { type: 'trial_credit'; addressHash: string; userId: string; at: Instant }
  | { type: 'charge_authorization'; authorization: AuthorizationState }
  | { type: 'consent'; consent: ConsentState }
  | { type: 'policies'; set: StoredPolicies }

/** The state of an app's authorisation to charge a user. */
export interface AuthorizationState {
  userId: string
  appId: string
  grantedAt: Instant
  revokedAt: Instant | null
}

export interface ConsentState extends AuthorizationState {
  id: string
  scopes: readonly string[]
}

export interface Attribution {
  /** When the change was recorded. A replay of the journal records it later than it happened. */
  at: Instant
  /** Null if the operator or the service itself caused it. */
  caller: Caller | null
}
