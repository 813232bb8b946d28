import type { Json } from './hub-protocol.ts'

/** An API key as returned by all calls, without the secret itself. */
export interface ApiKeyObject {
  id: string
  user_id: string
  key_prefix: string
  name: string | null
  app_id: string
  scopes: string[]
  unrestricted: boolean
  allowed_networks: string[]
  status: 'active' | 'expired' | 'revoked'
  created_at: string
  last_used_at: string | null
  /** `network` is an IPv4 address or an IPv6 /64, the unit of rate limits; `client` is the User-Agent. */
  last_used_from: { network: string; client: string | null } | null
  expires_at: string | null
  revoked_at: string | null
  replaced_by: string | null
  /** Set by the owner, for example the id of a customer. */
  external_id: string | null
  /** JSON set by the owner. */
  metadata: { [name: string]: Json } | null
  limits: KeyLimits
  /** Limits set by the operator of the service. Where `limits` has one of the same kind, the lower one applies. */
  operator_limits: KeyLimits
}

/** The limits of a key; `{}` means none. A list has at most one limit for each `per`. */
export interface KeyLimits {
  /** Limits of exchanges, API calls, and calls that apps consume by introspection, in sliding windows. */
  requests?: { limit: number; per: 'second' | 'minute' | 'hour' | 'day' }[]
  /** Limits of what apps charge to the key, per calendar day or month (UTC) or in total. Decimals as in `Money`. */
  spend?: { amount: string; per: 'day' | 'month' | 'total' }[]
  quota?: KeyQuota
}

/** Calls that apps may consume by introspection. */
export interface KeyQuota {
  remaining: number
  /** Sets `remaining` to `amount` at the start of each calendar hour, day or month (UTC). */
  refill?: { amount: number; every: 'hour' | 'day' | 'month' }
}

/**
 * The limits in a request to create or change a key. A quota without `remaining` keeps the calls that remain; if the
 * key had no quota, it starts with the amount of a refill.
 */
export type WantedKeyLimits = Omit<KeyLimits, 'quota'> & {
  quota?: Partial<Pick<KeyQuota, 'remaining'>> & Pick<KeyQuota, 'refill'>
}

/** The only response that contains the key itself. */
export interface CreatedApiKey extends ApiKeyObject {
  key: string
}

export interface AgentTokenAnswer {
  token: string
  agent_id: string
  /** Seconds. */
  expires_in: number
}

export interface UserObject {
  id: string
  email: string
  name: string | null
  role: 'user' | 'support' | 'admin'
  status: 'active' | 'suspended' | 'deleted'
  created_at: string
  /** The language of pages and mails (BCP 47); null if the user has chosen none. */
  locale: string | null
}

export interface SendMagicLinkAnswer {
  status: 'sent'
  /** Seconds. */
  expires_in: number
  login_id: string
}

export interface SessionAnswer {
  user: UserObject
  access_token: string
  token_type: 'Bearer'
  /** Seconds. */
  expires_in: number
  refresh_token: string
  /** Seconds. */
  refresh_expires_in: number
  session_id: string
}

export interface SignInAnswer extends SessionAnswer {
  is_new_user: boolean
}

export interface SessionObject {
  id: string
  created_at: string
  last_used_at: string
  expires_at: string
  /** The app that the session was opened for, or whose id was given when the person signed in. */
  app_id: string
  client: string | null
  network: string
  current: boolean
}

export interface Money {
  /** Decimal with 2 to 6 places. */
  amount: string
  currency: 'USD'
}

export interface ChargeAuthorizationObject {
  app_id: string
  name: string
  granted_at: string
  revoked_at: string | null
}

/** An app's access to your account. */
export interface ConsentObject {
  app_id: string
  name: string
  scopes: string[]
  granted_at: string
}

export interface AccountObject {
  user: UserObject
  balance: Money
  subscription: { plan: string; status: string; started_at: string }
  charge_authorizations: ChargeAuthorizationObject[]
  /** A change of the address that awaits confirmation. */
  email_change: EmailChangeObject | null
  /** When the account will be deleted; null if no deletion is scheduled. */
  deletes_at: string | null
}

export interface EmailChangeObject {
  /** The new address. */
  email: string
  /** Which addresses have not confirmed yet. */
  awaits: ('old' | 'new')[]
  created_at: string
  expires_at: string
}

export interface LedgerEntryObject {
  id: string
  kind: string
  /** Signed decimal. */
  amount: string
  balance_after: string
  app_id: string | null
  /** The API key that the charge named. */
  key_id: string | null
  description: string
  created_at: string
}

export interface SecurityEventObject {
  id: string
  type: string
  at: string
  network: string | null
  client: string | null
  key_id?: string
  session_id?: string
}

/** The counts of one hour or one day (UTC). */
export interface UsageBucketObject {
  start: string
  exchanges: number
  api_calls: number
  introspections: number
  /** Refusals by error code. */
  refused: Record<string, number>
  connections: number
  connected_seconds: number
  messages_sent: number
  messages_received: number
  /** US dollars, as a decimal. */
  charged: string
}

export interface UsageAnswer {
  /** Every bucket of the range, oldest first. */
  data: UsageBucketObject[]
}

export interface AgentConnectionObject {
  connection_id: string
  key_id: string
  key_name: string | null
  connected_at: string
  address: string
  client: string | null
}

/** A page of a list, newest first; of the revocations, oldest first. */
export interface Page<Item> {
  data: Item[]
  has_more: boolean
  next_cursor: string | null
}

/** One entry of `GET /v1/revocations`: a key, session or account that ended early. */
export interface RevocationObject {
  id: string
  kind: 'api_key' | 'session' | 'user'
  /** The id of the key, session or user. */
  subject_id: string
  /** The id of the owner of the key or session, or of the ended account itself. */
  user_id: string
  at: string
}

/** `POST /auth/introspect` (RFC 7662 section 2.2). */
export type IntrospectionAnswer = { active: false } | ({ active: true } & Record<string, Json>)

/** The answer of introspection about an API key (`apps.verifyKey`). */
export type KeyVerification = { active: false } | VerifiedKey

export interface VerifiedKey {
  active: true
  type: 'api_key'
  iss: string
  /** The owner's id. */
  sub: string
  /** The app that the key is for. */
  client_id: string
  key_id: string
  /** Space separated; absent where `unrestricted`. */
  scope?: string
  unrestricted: boolean
  /** Seconds since 1970, as is `exp`. */
  iat: number
  exp?: number
  /**
   * This field and the next two are present only for first-party apps, and for the app that the key is for, unless the
   * key is older than the app's registration and was not adopted by it.
   */
  external_id?: string | null
  metadata?: { [name: string]: Json } | null
  limits?: LeftOfLimits
}

/** The remaining requests, calls and amounts of a key's limits. */
export interface LeftOfLimits {
  requests?: { limit: number; remaining: number; reset_seconds: number }[]
  quota?: { remaining: number }
  /** Amounts are decimals; `reset_seconds` is absent for `total`. */
  spend?: { per: 'day' | 'month' | 'total'; amount: string; remaining: string; reset_seconds?: number }[]
}

/** An action of an administrator, of the `keyway` command, or of the service because of a setting. */
export interface AuditEventObject {
  id: string
  at: string
  actor: {
    type: 'user' | 'command' | 'service'
    id: string | null
    key_id: string | null
    session_id: string | null
  }
  /** `user_id`: the person concerned. */
  subject: { type: string; id: string | null; user_id: string | null }
  type: string
  before: { [name: string]: Json } | null
  after: { [name: string]: Json } | null
  /** Null if none was given, or if it was erased with the person's data. */
  reason: string | null
  network: string | null
  request_id: string | null
  /** SHA-256 of salt and reason. `hash` covers it instead of the reason, which may be erased. */
  reason_hash: string | null
  reason_salt: string | null
  /** 1, 2, 3 … without gaps. */
  sequence: number
  previous_hash: string
  /**
   * SHA-256 of `previous_hash` and the canonical JSON (RFC 8785) of the fields from `id` to `request_id`, in which
   * `reason` has the value of `reason_hash`.
   */
  hash: string
}
