import type { ColumnType } from 'kysely'
import type { AuditType } from '../audit/audit-event.ts'
import type { LedgerEntryKind } from '../billing/ledger.ts'
import type { Instant } from '../clock.ts'
import type { DeviceDecision } from '../device-authorizations/device-authorization.ts'
import type { Ending } from '../endings/ending.ts'
import type { InvitedRole } from '../invitations/invitation.ts'
import type { RefillPeriod } from '../limits/limit.ts'
import type { MessageKind, MessageState } from '../outbox/message.ts'
import type { Suppression } from '../outbox/suppression.ts'
import type { SecurityEventType } from '../security-events/security-event.ts'
import type { SessionEndCause, SessionKind } from '../sessions/session.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'
import type { StatisticRow } from '../statistics/statistic.ts'
import type { UsageUnit } from '../usage/usage.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { ErasedAddress } from '../users/erased-address.ts'
import type { UserRole, UserStatus } from '../users/user.ts'
import type { DeliveryState, Webhook } from '../webhooks/webhook.ts'
import type { SentEventType } from '../webhooks/webhook-event.ts'

/** A boolean; SQLite has no such type. */
export type Flag = 0 | 1
/** A list of strings as JSON. */
export type ListText = string
/** `Limits` as JSON; the column is null if there are no limits. */
export type LimitsText = string

/** All tables after all migrations, the same in both engines. */
export interface Schema {
  users: UserRow
  balances: { user_id: string; balance: number }
  ledger_entries: LedgerEntryRow
  trial_credits: { address_hash: string; user_id: string; claimed_at: Instant }
  subscriptions: { user_id: string; plan: 'free'; status: 'active'; started_at: Instant }
  charge_authorizations: ChargeAuthorizationRow
  consents: ConsentRow
  authorization_codes: AuthorizationCodeRow
  logout_notices: LogoutNoticeRow
  registered_clients: { app_id: string; created_at: Instant }
  client_assertions: { app_id: string; jti_hash: string; expires_at: Instant }
  api_keys: ApiKeyRow
  key_alerts: { lineage_id: string; kind: string; period: number; at: Instant }
  key_networks: { lineage_id: string; network: string; seen_at: Instant }
  key_spend: KeySpendRow
  key_metadata: { key_id: string; metadata: string }
  apps: AppRow
  audit_chain: AuditChainTable
  audit_events: AuditEventRow
  audit_reasons: { sequence: number; user_id: string | null; salt: string; reason: string }
  app_secrets: { app_id: string; secret_hash: string; created_at: Instant }
  device_authorizations: DeviceAuthorizationRow
  email_changes: EmailChangeRow
  endings: EndingRow
  inbox: { id: string; recipient: EmailAddress; sealed_mail: string; created_at: Instant }
  instance: { name: string; value: string }
  limit_holders: { id: string; until: Instant }
  limit_leases: {
    subject: string
    version: number
    state: string
    wanted_at: Instant | null
    prunable_at: Instant
  }
  listed_administrators: {
    address_hash: string
    listed_at: Instant
    claimed_at: Instant | null
    user_id: string | null
  }
  magic_links: MagicLinkRow
  send_buckets: { bucket: string; count: number }
  sends: { bucket: string; number: number; sent_at: Instant }
  mail_suppressions: Suppression
  messages: MessageRow
  nodes: {
    id: string
    started_at: Instant
    seen_at: Instant
    version: string
    seals_events: Flag | null
    relay_version: number | null
  }
  connections: ConnectionRow
  user_nodes: { user_id: string; node_id: string }
  invitations: InvitationRow
  policies: PolicyRow
  quotas: QuotaRow
  security_events: SecurityEventRow
  sessions: SessionRow
  signing_keys: SigningKeyRow
  algorithm_keys: AlgorithmKeyRow
  statistics: StatisticRow
  usage_counts: UsageCountsRow
  usage_refusals: UsageRefusalsRow
  usage_flushes: { writer: string; sequence: number; at: Instant }
  webhooks: WebhookRow
  webhook_secrets: { id: string; webhook_id: string; sealed_secret: string; created_at: Instant }
  webhook_queues: WebhookQueueRow
  webhook_deliveries: WebhookDeliveryRow
  wrong_codes: WrongCodeRow
  schema_migrations: { name: string; applied_at: Instant }
  schema_lock: { id: number }
}

export interface EmailChangeRow {
  user_id: string
  session_id: string
  old_email: EmailAddress
  new_email: EmailAddress
  old_token_hash: string
  new_token_hash: string
  old_confirmed_at: Instant | null
  new_confirmed_at: Instant | null
  created_at: Instant
  expires_at: Instant
}

export interface UserRow {
  id: string
  email: EmailAddress | null
  name: string | null
  role: UserRole
  status: UserStatus
  created_at: Instant
  deleted_at: Instant | null
  /** When the deletion that the owner requested is due; null if none is. */
  deletes_at: Instant | null
  /** The operator's own id for the person, if the account was imported. */
  external_id: string | null
  /** 1 for an imported account before its first sign-in. */
  awaits_onboarding: Flag | null
  keys_pruned: Flag | null
  usage_pruned: Flag | null
  locale: string | null
}

export interface LedgerEntryRow {
  id: string
  user_id: string
  kind: LedgerEntryKind
  amount: number
  balance_after: number
  app_id: string | null
  description: string
  cause: string
  created_at: Instant
  key_id: string | null
  lineage_id: string | null
}

export interface KeySpendRow {
  lineage_id: string
  day: number
  day_spent: number
  month: number
  month_spent: number
  total_spent: number
}

export interface ChargeAuthorizationRow {
  user_id: string
  app_id: string
  granted_at: Instant
  revoked_at: Instant | null
}

export interface ApiKeyRow {
  id: string
  user_id: string
  app_id: string
  key_hash: string
  key_prefix: string
  name: string | null
  scopes: ListText
  allowed_networks: ListText
  created_at: Instant
  expires_at: Instant | null
  revoked_at: Instant | null
  last_used_at: Instant | null
  replaced_by: string | null
  expiry_notice: number | null
  external_id: string | null
  metadata_bytes: number | null
  last_used_network: string | null
  last_used_client: string | null
  /** Null if it is the key's own id. */
  lineage_id: string | null
  limits: LimitsText | null
  operator_limits: LimitsText | null
  /** 1 for a key of another system, which was imported by its hash. */
  imported: Flag | null
}

export interface AppRow {
  id: string
  name: string
  first_party: Flag
  audience: string | null
  verify_url: string | null
  created_at: Instant
  covers_from: Instant | null
  redirect_uris: ListText | null
  logout_uris: ListText | null
  backchannel_logout_uri: string | null
  token_alg: SigningAlg | null
  id_token_alg: SigningAlg | null
  scopes: ListText | null
  trusted: Flag | null
  is_public: Flag | null
  jwks_uri: string | null
  require_pkce: Flag | null
  removed_at: Instant | null
}

export interface DeviceAuthorizationRow {
  id: string
  client_id: string
  device_code_hash: string
  user_code_hash: string
  ticket_hash: string
  scopes: ListText
  resource: string | null
  device_name: string | null
  address: string
  network: string
  client: string | null
  created_at: Instant
  expires_at: Instant
  poll_interval: number
  last_polled_at: Instant | null
  decision: DeviceDecision | null
  decided_at: Instant | null
  user_id: string | null
  sign_in_id: string | null
  auth_time: Instant | null
  redeemed_at: Instant | null
  session_id: string | null
  key_id: string | null
}

export interface AuditEventRow {
  sequence: number
  id: string
  at: Instant
  type: AuditType
  actor_id: string | null
  /** JSON, like `subject`, `before_state` and `after_state`. */
  actor: string
  subject_id: string | null
  user_id: string | null
  subject: string
  before_state: string | null
  after_state: string | null
  reason_hash: string | null
  network: string | null
  request_id: string | null
  previous_hash: string
  hash: string
}

export interface AuditChainRow {
  id: string
  sequence: number
  at: Instant
  hash: string
  sealed_sequence: number | null
  sealed_hash: string | null
  sealed_mac: string | null
  pruned_sequence: number | null
  pruned_hash: string | null
  pruned_mac: string | null
}

/** The table's type for the query builder: nullable columns may be omitted in an insert. */
type AuditChainTable = {
  [Column in keyof AuditChainRow]: AuditChainRow[Column] extends infer Value
    ? null extends Value
      ? ColumnType<Value, Value | undefined, Value>
      : Value
    : never
}

export interface EndingRow {
  id: string
  kind: Ending['kind']
  subject_id: string
  user_id: string
  at: Instant
}

export interface MagicLinkRow {
  id: string
  token_hash: string
  code_hash: string
  email: EmailAddress | ErasedAddress
  app_id: string
  created_at: Instant
  expires_at: Instant
  used_at: Instant | null
  code_tries: number
  locale: string | null
}

export interface MessageRow {
  id: string
  kind: MessageKind
  recipient: EmailAddress
  user_id: string | null
  sealed_content: string | null
  state: MessageState
  attempts: number
  created_at: Instant
  next_attempt_at: Instant
  send_before: Instant | null
  leased_until: Instant | null
  leased_by: string | null
  settled_at: Instant | null
  last_error: string | null
}

export interface ConnectionRow {
  id: string
  node_id: string
  user_id: string
  key_id: string
  key_name: string | null
  address: string
  client: string | null
  connected_at: Instant
}

export interface InvitationRow {
  id: string
  email: EmailAddress
  role: InvitedRole | null
  invited_by: string | null
  created_at: Instant
  expires_at: Instant
  accepted_at: Instant | null
  user_id: string | null
  revoked_at: Instant | null
}

export interface PolicyRow {
  id: string
  /** `PolicyOverrides` as JSON. */
  document: string
  changed_at: Instant
}

export interface QuotaRow {
  id: string
  key_id: string
  remaining: number
  refill_amount: number | null
  refill_every: RefillPeriod | null
  /** When the next refill is due; null if the quota has no refill, and after `QuotaStore.close`. */
  refills_at: Instant | null
  /** The number of calls that the last lease took; after `QuotaStore.close` the number that remained until then. */
  leased: number
  retired_at: Instant | null
}

export interface SecurityEventRow {
  id: string
  user_id: string
  type: SecurityEventType
  at: Instant
  network: string | null
  client: string | null
  key_id: string | null
  session_id: string | null
}

export interface SessionRow {
  id: string
  user_id: string
  app_id: string
  kind: SessionKind
  created_at: Instant
  last_used_at: Instant
  expires_at: Instant
  counter: number
  sealed_secret: string
  retry_keys: ListText
  ended_at: Instant | null
  ended_by: SessionEndCause | null
  network: string
  client: string | null
  /** The scopes of a session that was opened for an app; null for others. */
  scopes: ListText | null
  audience: string | null
  /** Null only in rows of older versions, for which `created_at` is read instead. */
  auth_time: Instant | null
  sign_in_id: string | null
}

export interface ConsentRow {
  id: string
  user_id: string
  app_id: string
  scopes: ListText
  granted_at: Instant
  revoked_at: Instant | null
}

export interface LogoutNoticeRow {
  session_id: string
  app_id: string
  user_id: string
  created_at: Instant
  attempts: number
  next_attempt_at: Instant
}

export interface AuthorizationCodeRow {
  code_hash: string
  app_id: string
  user_id: string
  sign_in_id: string
  redirect_uri: string | null
  scopes: ListText
  audience: string | null
  nonce: string | null
  code_challenge: string | null
  auth_time: Instant
  network: string
  client: string | null
  pushed_id: string | null
  created_at: Instant
  expires_at: Instant
  used_at: Instant | null
  session_id: string | null
}

export interface SigningKeyRow {
  id: string
  /** 1, 2, 3 …; unique, so that of two first keys inserted concurrently only one is accepted. */
  sequence: number
  public_key: string
  sealed_seed: string
  created_at: Instant
  signs_from: Instant
  retires_at: Instant | null
}

export interface AlgorithmKeyRow {
  id: string
  alg: Exclude<SigningAlg, 'EdDSA'>
  /** 1, 2, 3 … for each algorithm; unique, so that of two first keys inserted concurrently only one is accepted. */
  sequence: number
  public_key: string
  sealed_private_key: string
  created_at: Instant
  signs_from: Instant
  retires_at: Instant | null
}

interface UsageBucketKey {
  user_id: string
  /** Empty in rows with the user's totals. */
  key_id: string
  unit: UsageUnit
  start: Instant
}

export interface UsageCountsRow extends UsageBucketKey {
  exchanges: number
  api_calls: number
  introspections: number
  connections: number
  connected_ms: number
  messages_sent: number
  messages_received: number
  /** Micro-dollars. */
  charged: number
}

export interface UsageRefusalsRow extends UsageBucketKey {
  code: string
  count: number
}

export interface WebhookRow {
  id: string
  url: string
  events: ListText
  created_at: Instant
  disabled_at: Instant | null
  disabled_by: Webhook['disabledBy']
  removed_at: Instant | null
  dropped: number
}

export interface WebhookQueueRow {
  id: string
  webhook_id: string
  subject: string
  last_sequence: number
  /** Null if no event is queued. */
  next_attempt_at: Instant | null
  leased_until: Instant | null
  leased_by: string | null
  /** When the queue may be pruned; null if its subject may have more events. */
  forgotten_after: Instant | null
}

export interface WebhookDeliveryRow {
  id: string
  webhook_id: string
  queue_id: string
  subject: string
  sequence: number
  type: SentEventType
  data: string
  state: DeliveryState
  created_at: Instant
  attempts: number
  first_attempt_at: Instant | null
  settled_at: Instant | null
  last_attempt_at: Instant | null
  last_duration_ms: number | null
  last_status: number | null
  last_error: string | null
  last_answer: string | null
}

export interface WrongCodeRow {
  id: string
  link_id: string
  at: Instant
  mailbox: string
  returning_browser: Flag
  networks: ListText
}
