import type { Answer, Json } from '@keyway/sdk/protocol'
import type { Context } from 'hono'
import type { Deletions } from '../account-changes/deletions.ts'
import type { EmailChanges } from '../account-changes/email-changes.ts'
import type { Administration } from '../administration/administration.ts'
import type { Examination } from '../administration/finding.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import type { Apps } from '../apps/apps.ts'
import type { Authorizations } from '../authorizations/authorizations.ts'
import type { Accounts } from '../billing/accounts.ts'
import type { Credits } from '../billing/credits.ts'
import type { Brand } from '../brand/brand.ts'
import type { Clock } from '../clock.ts'
import type { Consents } from '../consents/consents.ts'
import type { DeviceAuthorizations } from '../device-authorizations/device-authorizations.ts'
import type { KeywayError } from '../errors.ts'
import type { Invitations } from '../invitations/invitations.ts'
import type { Localizations } from '../languages/localization.ts'
import type { Log } from '../log.ts'
import type { MagicLinks } from '../magic-links/magic-links.ts'
import type { Caller } from '../network.ts'
import type { Inbox } from '../outbox/outbox.ts'
import type { Suppressions } from '../outbox/suppressions.ts'
import type { PolicyRegistry } from '../policies/policies.ts'
import type { Secrets } from '../secrets.ts'
import type { SecurityEventStore } from '../security-events/security-event-store.ts'
import type { SignedIn } from '../sessions/session.ts'
import type { SessionLifetimes } from '../sessions/session-lifetime.ts'
import type { Sessions } from '../sessions/sessions.ts'
import type { SigningKeys } from '../signing-keys/signing-keys.ts'
import type { Statistics } from '../statistics/statistics.ts'
import type { Store } from '../store.ts'
import type { UsageReports } from '../usage/reports.ts'
import type { User } from '../users/user.ts'
import type { Users } from '../users/users.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { Cookies } from './cookies.ts'
import type { FormOf, Forms } from './forms.ts'
import type { Html, PageOptions, Shell } from './layout.ts'
import type { PendingRequests } from './pending-requests.ts'
import type { Streams } from './streams.ts'

/** A live connection, as shown on pages. */
export interface LiveAgent {
  connectionId: string
  keyId: string
  keyName: string | null
  address: string
  client: string | null
  connectedAt: number
}

export interface PageAgents {
  connections(userId: string): Promise<LiveAgent[]>
  /**
   * Sends a request to one connection; null if the user has no such connection. `answer` is null if none came in time.
   *
   * @throws KeywayError `rate_limited`
   */
  ask(
    userId: string,
    connectionId: string,
    data: Json,
  ): Promise<{ answer: Answer | null; afterMs: number } | null>
  disconnect(userId: string, connectionId: string): Promise<boolean>
}

/** An API call that a person entered in the documentation. */
export interface FilledInCall {
  operation: string
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  /** The JSON text of the body. */
  body: string
}

/** The API, as the documentation shows and calls it. */
export interface PageApi {
  document(): object
  /** Whether the documentation offers to run the operation. */
  mayTry(operation: string): boolean
  /** Makes a call as the signed-in person; a refusal is returned as an answer, too. */
  call(typed: FilledInCall, signedIn: SignedIn, env: unknown): Promise<{ status: number; body?: unknown }>
}

export interface PageServices {
  api: PageApi
  accounts: Accounts
  apps: Pick<
    Apps,
    'page' | 'find' | 'register' | 'change' | 'remove' | 'secrets' | 'newSecret' | 'removeSecret'
  >
  administration: Administration
  examination: Examination
  credits: Credits
  suppressions: Pick<Suppressions, 'lift'>
  /** What pages only show, read directly from the store. */
  store: Pick<
    Store,
    'users' | 'apiKeys' | 'apps' | 'audit' | 'billing' | 'invitations' | 'outbox' | 'suppressions'
  >
  agents: PageAgents
  apiKeys: ApiKeys
  /** Loaded on first use. */
  authorizations(): Promise<Authorizations>
  clock: Clock
  consents: Consents
  deletions: Pick<Deletions, 'request' | 'cancel'>
  emailChanges: EmailChanges
  /**
   * Everything about a person as one JSON document; the reader `operator` also gets what only operators may see.
   *
   * @param reauthenticate rejects once the reader may no longer read
   * @throws KeywayError `rate_limited` if too many exports of this person are running
   */
  exportOf(user: User, reader: 'person' | 'operator', reauthenticate: () => Promise<unknown>): ReadableStream
  deviceAuthorizations: DeviceAuthorizations
  /**
   * `refusal` counts the error by the caller's network, if it is a failed guess of a credential. It returns the error,
   * or `rate_limited` once there are too many. `assertMayGuess`, which is called before a code is checked, throws
   * `rate_limited` in that case.
   */
  failures: { refusal(caller: Caller, error: KeywayError): KeywayError; assertMayGuess(caller: Caller): void }
  /** Null if mail is sent instead of being stored locally. */
  inbox: Inbox | null
  lifetimes: SessionLifetimes
  localizations: Localizations
  log: Log
  magicLinks: MagicLinks
  maxActiveKeys: number
  invitations: Pick<Invitations, 'invite' | 'revoke'>
  policies: Pick<PolicyRegistry, 'current' | 'read' | 'change'>
  productName: string
  brand: Brand
  publicUrl: string
  secrets: Secrets
  signingKeys: Pick<SigningKeys, 'jwks' | 'rotate'>
  securityEvents: Pick<SecurityEventStore, 'list'>
  sessions: Sessions
  /** Aborted when the process drains, to end streams. */
  stopping: AbortSignal
  supportEmail: string
  usage: UsageReports
  statistics: Pick<Statistics, 'report' | 'people' | 'flush'>
  users: Users
  /** Loaded on first use. */
  webhooks(): Promise<Webhooks>
}

/** What pages need to know of a request. Provided by the HTTP layer, which `web/` must not import. */
export interface RequestFacts {
  callerOf(request: Request, env: unknown): Caller
  formOf: FormOf
  /** The id in `X-Request-Id` of the response. */
  requestIdOf(env: unknown): string
  /** Whether the listening address, the peer and Host are loopback and no proxy header is present. */
  isLocal(request: Request, env: unknown): boolean
}

export interface PageVariables {
  Variables: { signedIn: SignedIn | null }
}

export type PageContext = Context<PageVariables>

/** Dependencies of every page. */
export interface PageKit extends PageServices, RequestFacts {
  cookies: Cookies
  forms: Forms
  pendingRequests: PendingRequests
  shell: Shell
  streams: Streams
  /** Whether there is a local inbox that this client may open. */
  showsInbox(c: PageContext): boolean
  /** Responds with a complete page. */
  render(
    c: PageContext,
    options: Partial<PageOptions> & { title: string },
    body: Html,
    status?: number,
  ): Response | Promise<Response>
  /** The signed-in user and session. @throws Redirect to /sign-in if there is none */
  requireSession(c: PageContext): SignedIn
}

/** Thrown if no page answers the path and method of a request that does not accept HTML. */
export class NoPage extends Error {
  override readonly name = 'NoPage'
  /** The methods that the path supports, as in the header `Allow`; null if there is no page at this path. */
  readonly allow: string | null
  constructor(allow: string | null) {
    super('no page')
    this.allow = allow
  }
}

/** Thrown by a handler to redirect. */
export class Redirect extends Error {
  readonly location: string
  constructor(location: string) {
    super(location)
    this.location = location
  }
}
