import type { Instant } from '../clock.ts'

export type SecurityEventType =
  | 'sign_in'
  | 'account_created'
  | 'refresh_token_reused'
  | 'session_ended'
  | 'api_key_created'
  | 'api_key_rotated'
  | 'api_key_revoked'
  | 'charge_authorization_granted'
  | 'charge_authorization_withdrawn'
  | 'account_suspended'
  | 'account_activated'
  | 'account_deleted'

/** What happened to an account, as its owner and the operator may read it. */
export interface SecurityEvent {
  id: string
  userId: string
  type: SecurityEventType
  at: Instant
  network: string | null
  client: string | null
  keyId: string | null
  sessionId: string | null
}
