import type { LedgerEntry } from '../billing/ledger.ts'
import type { Instant } from '../clock.ts'
import type { Caller } from '../network.ts'
import type { SecurityEvent } from '../security-events/security-event.ts'
import type { Ending } from './ending.ts'

/** One thing that a transaction did and that more than its own rows must know of. */
export type Fact =
  /** For hubs and the feed, which follow the table of endings. */
  | { type: 'ending'; ending: Ending }
  /** For the other nodes, and for the journal, which reads the subject's state after the commit. */
  | { type: 'changed'; kind: Ending['kind']; id: string; userId: string }
  /** For the owner and the log. */
  | { type: 'security_event'; event: SecurityEvent }
  // For the journal alone:
  | { type: 'app_secrets'; id: string }
  | { type: 'magic_link'; id: string; at: Instant }
  | { type: 'ledger'; entry: LedgerEntry }
  | { type: 'trial_credit'; addressHash: string; userId: string; at: Instant }
  | { type: 'charge_authorization'; authorization: AuthorizationState }

/** That an app may charge a user, or may not any more. */
export interface AuthorizationState {
  userId: string
  appId: string
  grantedAt: Instant
  revokedAt: Instant | null
}

/** When a change is recorded, which a replay does later than it happened, and who caused it. */
export interface Attribution {
  at: Instant
  /** Null when the operator or the service itself did it. */
  caller: Caller | null
}
