import type { HttpBindings } from '@hono/node-server'
import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Deletions } from '../account-changes/deletions.ts'
import type { EmailChanges } from '../account-changes/email-changes.ts'
import type { Administration } from '../administration/administration.ts'
import type { AgentTokens } from '../agent-tokens/agent-tokens.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import type { Apps } from '../apps/apps.ts'
import type { Accounts } from '../billing/accounts.ts'
import type { Charges } from '../billing/charges.ts'
import type { Credits } from '../billing/credits.ts'
import type { Consents } from '../consents/consents.ts'
import type { DeviceKeys } from '../device-authorizations/device-keys.ts'
import type { Revocations } from '../endings/revocation-feed.ts'
import type { KeywayError } from '../errors.ts'
import type { Hub } from '../hub/hub.ts'
import type { Introspection } from '../introspection/introspection.ts'
import type { Invitations } from '../invitations/invitations.ts'
import type { KeyLimiter } from '../limits/limits.ts'
import type { MagicLinks } from '../magic-links/magic-links.ts'
import type { OAuth } from '../oauth/oauth.ts'
import type { MailHooks } from '../outbox/mail-hook.ts'
import type { Suppressions } from '../outbox/suppressions.ts'
import type { PolicyRegistry } from '../policies/policies.ts'
import type { SecurityEventStore } from '../security-events/security-event-store.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { SigningKeys } from '../signing-keys/signing-keys.ts'
import type { Statistics } from '../statistics/statistics.ts'
import type { Store } from '../store.ts'
import type { Meter } from '../usage/meter.ts'
import type { UsageReports } from '../usage/reports.ts'
import type { User } from '../users/user.ts'
import type { Users } from '../users/users.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'

/** What the HTTP layer needs from the service. */
export interface HttpPorts {
  agentTokens: AgentTokens
  limiter: Pick<KeyLimiter, 'take'>
  apiKeys: ApiKeys
  deviceKeys: DeviceKeys
  sessions: Sessions
  magicLinks: MagicLinks
  users: Users
  accounts: Accounts
  apps: Pick<
    Apps,
    | 'authenticate'
    | 'page'
    | 'find'
    | 'register'
    | 'change'
    | 'remove'
    | 'secrets'
    | 'newSecret'
    | 'removeSecret'
  >
  charges: Charges
  consents: Consents
  deletions: Pick<Deletions, 'request' | 'cancel'>
  emailChanges: EmailChanges
  invitations: Pick<Invitations, 'invite' | 'revoke'>
  policies: Pick<PolicyRegistry, 'read' | 'change'>
  introspection: Introspection
  meter: Pick<Meter, 'count'>
  usage: UsageReports
  statistics: Pick<Statistics, 'report'>
  revocations: Revocations
  securityEvents: Pick<SecurityEventStore, 'list'>
  signingKeys: Pick<SigningKeys, 'jwks' | 'rotate'>
  administration: Administration
  credits: Credits
  suppressions: Pick<Suppressions, 'lift'>
  /** Tables that administrators list, read directly from the store. */
  store: Pick<Store, 'users' | 'apiKeys' | 'audit' | 'billing' | 'invitations' | 'outbox' | 'securityEvents'>
  hub: Pick<Hub, 'connections' | 'sendTo' | 'disconnect'>
  oauth: OAuth
  personExports: PersonExports
  /** Loaded on first use. */
  webhooks(): Promise<Webhooks>
  readiness: Readiness
  /** Absent if KEYWAY_MAIL_HOOK_SECRET is not set. */
  mailHooks?: MailHooks
}

/** Who reads an export: the person, or the operator, who also gets fields that only operators see. */
export type ExportReader = 'person' | 'operator'

export interface PersonExports {
  /**
   * Everything about one person as one JSON document, read as fast as the client takes it.
   *
   * @param reauthenticate called between two reads of the database; rejects if the reader may no longer read the export
   * @throws KeywayError `rate_limited` while two exports of this person are being read
   */
  exportOf(user: User, reader: ExportReader, reauthenticate: () => Promise<unknown>): ReadableStream
}

export interface HealthCheck {
  name: string
  ok: boolean
  /** Whether a failure makes the node not ready. */
  required: boolean
  /** One sentence for the operator, without secrets. */
  detail?: string
}

export interface Readiness {
  checks(): Promise<HealthCheck[]>
}

/** The response of `GET /metrics`. */
export interface MetricsSource {
  render(): Promise<{ type: string; body: string }>
}

/** What the metrics count of one response. */
export interface ObservedAnswer {
  method: string
  /** The declared path, never the requested one; `pages` for a page, `unknown` if no route matched. */
  route: string
  status: number
  milliseconds: number
  /** The error code of a refusal; null for other answers. */
  code: ErrorCode | null
}

/** The web pages. They answer all paths outside the API, and requests for which a route's `leftToPages` is true. */
export interface PagesApp {
  /** @throws KeywayError for a client that asked for JSON */
  fetch(request: Request, env: PageBindings): PageResult | Promise<PageResult>
}

export type PageResult = Response | NoPage

/** There is no such page, or it does not have this method. Browsers get an HTML page that says so instead. */
export interface NoPage {
  /** The methods of the page, as in `Allow`; null if there is no page. */
  allow: string | null
}

/** Passed to the pages with each Request object. */
export interface PageBindings extends HttpBindings {
  /** The body of a form, or the error that refused it; pages do not read bodies themselves. */
  form?: Buffer | KeywayError
  /** The `X-Request-Id` of the response. */
  requestId: string
}
