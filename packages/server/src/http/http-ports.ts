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
   * @param reauthenticate called before each further page of a list is read; rejects if the reader may no longer read
   *   the export, whose stream then fails
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

/** Creates the response of `GET /metrics`. */
export interface MetricsSource {
  render(): Promise<{ type: string; body: string }>
}

/** What the metrics count of one response. */
export interface ObservedAnswer {
  method: string
  /**
   * The declared path of the route, never the requested one. If no route matched: `pages` for a path outside the API
   * that the pages answer with another status than 404, otherwise `unknown`.
   */
  route: string
  status: number
  milliseconds: number
  /** The error code of a refused call; null for other answers, and for what the pages answer themselves. */
  code: ErrorCode | null
}

/** The web pages. They answer all paths outside the API, and requests for which a route's `leftToPages` is true. */
export interface PagesApp {
  /** @throws KeywayError, or the unexpected error of a page, for a client that asked for JSON */
  fetch(request: Request, env: PageBindings): PageResult | Promise<PageResult>
}

export type PageResult = Response | NoPage

/**
 * There is no such page, or it does not have this method. Returned for clients that do not accept HTML; all others get
 * a Response with an HTML page that says so.
 */
export interface NoPage {
  /** The methods of the page, as in `Allow`; null if there is no page. */
  allow: string | null
}

/** Passed to the pages with each Request object. */
export interface PageBindings extends HttpBindings {
  /**
   * The body of a POST request, or the error that refused it; absent for other methods. Pages do not read bodies
   * themselves.
   */
  form?: Buffer | KeywayError
  /** The `X-Request-Id` of the response. */
  requestId: string
}
