import type { HttpBindings } from '@hono/node-server'
import type { ErrorCode } from '@keyway/sdk/protocol'
import type { AgentTokens } from '../agent-tokens/agent-tokens.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import type { Apps } from '../apps/apps.ts'
import type { Accounts } from '../billing/accounts.ts'
import type { Charges } from '../billing/charges.ts'
import type { Revocations } from '../endings/revocation-feed.ts'
import type { KeywayError } from '../errors.ts'
import type { Hub } from '../hub/hub.ts'
import type { Introspection } from '../introspection/introspection.ts'
import type { MagicLinks } from '../magic-links/magic-links.ts'
import type { MailHooks } from '../outbox/mail-hook.ts'
import type { SecurityEventStore } from '../security-events/security-event-store.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { SigningKeys } from '../signing-keys/signing-keys.ts'
import type { Users } from '../users/users.ts'

/** The ports of the HTTP layer; tests may implement a part of them. */
export interface HttpPorts {
  agentTokens: AgentTokens
  apiKeys: ApiKeys
  sessions: Sessions
  magicLinks: MagicLinks
  users: Users
  accounts: Accounts
  apps: Pick<Apps, 'authenticate'>
  charges: Charges
  introspection: Introspection
  revocations: Revocations
  securityEvents: Pick<SecurityEventStore, 'list'>
  signingKeys: Pick<SigningKeys, 'jwks'>
  hub: Pick<Hub, 'connections' | 'sendTo' | 'disconnect'>
  readiness: Readiness
  /** Absent where no secret for them is set. */
  mailHooks?: MailHooks
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

/** The response of `GET /metrics`. */
export interface MetricsSource {
  render(): Promise<{ type: string; body: string }>
}

/** One answered request, as metrics count it. */
export interface ObservedAnswer {
  method: string
  /** The declared path, never the requested one; `pages` for a page, `unknown` where no route matched. */
  route: string
  status: number
  milliseconds: number
  /** The code of a refusal. */
  code: ErrorCode | null
}

/** The web pages, which answer what no API path claims and what a route leaves to them. */
export interface PagesApp {
  /** @throws KeywayError for a client that asked for JSON */
  fetch(request: Request, env: PageBindings): PageResult | Promise<PageResult>
}

export type PageResult = Response | NoPage

/**
 * For a client that is no browser: there is no such page, or not under this method. Browsers get a page of their own.
 */
export interface NoPage {
  /** The methods that the page answers, as in `Allow`; null: there is no page. */
  allow: string | null
}

/** What pages get with a request, in addition to its Request object. */
export interface PageBindings extends HttpBindings {
  /** The body of a form, or why it was refused; pages read no body themselves. */
  form?: Buffer | KeywayError
}
