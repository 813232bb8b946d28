import type { Json } from '@keyway/sdk/protocol'
import type { AgentTokens } from '../agent-tokens/agent-tokens.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import type { App } from '../apps/app.ts'
import type { Accounts } from '../billing/accounts.ts'
import type { LedgerEntry } from '../billing/ledger.ts'
import type { MicroDollars } from '../billing/money.ts'
import type { FeedPage } from '../endings/revocation-feed.ts'
import type { PresenceRow } from '../hub/presence-store.ts'
import type { MagicLinks } from '../magic-links/magic-links.ts'
import type { HookProvider } from '../outbox/suppression.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { SecurityEvent } from '../security-events/security-event.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { SigningKeys } from '../signing-keys/signing-keys.ts'
import type { Users } from '../users/users.ts'

/** Everything that the HTTP API can do; each is given, so a test can compose what it needs. */
export interface HttpServices {
  agentTokens: AgentTokens
  apiKeys: ApiKeys
  sessions: Sessions
  magicLinks: MagicLinks
  users: Users
  accounts: Accounts
  apps: AppSecrets
  charges: Charges
  introspection: Introspection
  revocations: Revocations
  securityEvents: SecurityEvents
  signingKeys: Pick<SigningKeys, 'jwks'>
  hub: HubControl
  readiness: Readiness
  /** Absent where no secret for them is set. */
  mailHooks?: MailHooks
}

export interface MailHooks {
  /** Whether the headers alone leave it open that the provider sent this; asked before the body is read. */
  mayBeFrom(provider: HookProvider, header: (name: string) => string | undefined): boolean
  receive(
    provider: HookProvider,
    call: { header(name: string): string | undefined; body: Buffer },
  ): Promise<'accepted' | 'forged' | 'unreadable'>
}

export interface AppSecrets {
  /** The registered app whose secret this is, or null. Constant time. */
  authenticate(id: string, secret: string): Promise<App | null>
}

export interface Charges {
  /** @throws KeywayError `charge_not_authorized`, `insufficient_balance`, `idempotency_conflict` */
  charge(
    app: App,
    wanted: { userId: string; amount: MicroDollars; description: string },
    idempotencyKey: string,
  ): Promise<LedgerEntry>
}

/** RFC 7662 section 2.2. */
export type IntrospectionAnswer = { active: false } | ({ active: true } & Record<string, Json>)

export interface Introspection {
  /** What a key, access token or agent token stands for now. Dead and unknown ones are not active; moves nothing. */
  introspect(token: string, app: App): Promise<IntrospectionAnswer>
}

export interface Revocations {
  /**
   * What ended after `cursor` (null: in the last 20 minutes), oldest first. Entries may come twice, since
   * transactions land late; a follower keeps a set. Null: the cursor was not made here.
   */
  since(cursor: string | null, limit: number): Promise<FeedPage | null>
  /** Calls `listener` when something ended on any node. Returns the way to stop. */
  subscribe(listener: () => void): () => void
}

export interface SecurityEvents {
  list(userId: string, page: PageRequest): Promise<Slice<SecurityEvent>>
}

/** What the HTTP API asks of the hub, about all nodes. */
export interface HubControl {
  /** Live connections of a user, newest first. */
  connections(userId: string): Promise<PresenceRow[]>
  /** Sends as `api` to a connection or to all of a key's; null when nothing of that name is the user's. */
  sendTo(userId: string, to: string, data: Json): Promise<number | null>
  /** False when there is no such connection of the user. */
  disconnect(userId: string, connectionId: string): Promise<boolean>
}

export interface HealthCheck {
  name: string
  ok: boolean
  /** Whether the service cannot serve without it. */
  required: boolean
  /** One sentence for the operator; names nothing secret. */
  detail?: string
}

export interface Readiness {
  checks(): Promise<HealthCheck[]>
}
