import type { EmailChangeStore } from './account-changes/email-change-store.ts'
import type { ApiKeyChanges, ApiKeyStore } from './api-keys/api-key-store.ts'
import type { KeyAlertStore } from './api-keys/key-alert-store.ts'
import type { AppChanges, AppStore } from './apps/app-store.ts'
import type { AuditChanges, AuditStore } from './audit/audit-store.ts'
import type { AuthorizationCodeStore } from './authorizations/authorization-code-store.ts'
import type { ReplayChanges, ReplayStore } from './backup/replay-store.ts'
import type { BillingChanges, BillingStore } from './billing/billing-store.ts'
import type { RegisteredClientStore } from './clients/registered-client-store.ts'
import type { Instant } from './clock.ts'
import type { ConsentChanges, ConsentStore } from './consents/consent-store.ts'
import type { DeviceAuthorizationStore } from './device-authorizations/device-authorization-store.ts'
import type { EndingStore } from './endings/ending-store.ts'
import type { Fact } from './endings/fact.ts'
import type { Event, Events, SubjectEvent } from './events.ts'
import type { LocationStore } from './hub/location-store.ts'
import type { PresenceChanges, PresenceStore } from './hub/presence-store.ts'
import type {
  AdministrativeInvitationChanges,
  InvitationChanges,
  InvitationStore,
} from './invitations/invitation-store.ts'
import type { LeaseStore } from './limits/lease-store.ts'
import type { QuotaStore } from './limits/quota-store.ts'
import type { LogoutNoticeStore } from './logout-notices/logout-notice-store.ts'
import type { MagicLinkChanges, MagicLinkStore } from './magic-links/magic-link-store.ts'
import type { WrongCodeStore } from './magic-links/wrong-code-store.ts'
import type { ClientAssertionStore } from './oauth/client-assertion-store.ts'
import type { InstanceStore } from './operations/instance-store.ts'
import type { InboxStore, OutboxStore } from './outbox/outbox-store.ts'
import type { SuppressionStore } from './outbox/suppression-store.ts'
import type { AdministrativePolicyChanges, PolicyStore } from './policies/policy-store.ts'
import type { SecurityEventChanges, SecurityEventStore } from './security-events/security-event-store.ts'
import type { SessionChanges, SessionStore } from './sessions/session-store.ts'
import type { SigningKeyStore } from './signing-keys/signing-key-store.ts'
import type { StatisticsStore } from './statistics/statistics-store.ts'
import type { UsageStore } from './usage/usage-store.ts'
import type { AdministratorStore } from './users/administrator-store.ts'
import type { AdministrativeUserChanges, UserChanges, UserStore } from './users/user-store.ts'
import type { WebhookEvent } from './webhooks/webhook-event.ts'
import type { WebhookDeliveryStore, WebhookStore } from './webhooks/webhook-store.ts'

/** The persistence ports, one per noun. Operations that end, grant or charge something are in `Changes`. */
export interface Store {
  users: UserStore
  billing: BillingStore
  apiKeys: ApiKeyStore
  administrators: AdministratorStore
  apps: AppStore
  authorizationCodes: AuthorizationCodeStore
  clientAssertions: ClientAssertionStore
  consents: ConsentStore
  logoutNotices: LogoutNoticeStore
  registeredClients: RegisteredClientStore
  deviceAuthorizations: DeviceAuthorizationStore
  audit: AuditStore
  keyAlerts: KeyAlertStore
  emailChanges: EmailChangeStore
  endings: EndingStore
  inbox: InboxStore
  instance: InstanceStore
  invitations: InvitationStore
  limitLeases: LeaseStore
  magicLinks: MagicLinkStore
  outbox: OutboxStore
  policies: PolicyStore
  presence: PresenceStore
  locations: LocationStore
  quotas: QuotaStore
  replay: ReplayStore
  securityEvents: SecurityEventStore
  sessions: SessionStore
  signingKeys: SigningKeyStore
  statistics: StatisticsStore
  suppressions: SuppressionStore
  usage: UsageStore
  webhookDeliveries: WebhookDeliveryStore
  webhooks: WebhookStore
  wrongCodes: WrongCodeStore
}

/**
 * Operations that only a transaction has, among them all that end, grant or charge something. Each writes, besides its
 * own rows, the facts that endings/facts.ts lists for it: an operation that is missing there does not compile, and
 * callers cannot omit the facts.
 */
export interface Changes {
  users: UserChanges
  billing: BillingChanges
  apiKeys: ApiKeyChanges
  apps: AppChanges
  consents: ConsentChanges
  audit: AuditChanges
  invitations: InvitationChanges
  magicLinks: MagicLinkChanges
  policies: NoChanges
  presence: PresenceChanges
  replay: ReplayChanges
  securityEvents: SecurityEventChanges
  sessions: SessionChanges
}

/** Policies have no operations here: only administrators change them. */
type NoChanges = Record<never, never>

/** Administrative operations. Only `Audit.perform` gives a transaction that has them, and records them. */
export interface AdministrativeChanges {
  users: AdministrativeUserChanges
  invitations: AdministrativeInvitationChanges
  policies: AdministrativePolicyChanges
}

/** All operations that record facts, administrative ones included. */
export type RecordedChanges = {
  [Noun in keyof Changes]: Changes[Noun] &
    (Noun extends keyof AdministrativeChanges ? AdministrativeChanges[Noun] : unknown)
}

/** The ports, extended by the operations that only a transaction has. */
export type WithChanges<Ports extends Store> = {
  [Noun in keyof Store]: Ports[Noun] & (Noun extends keyof Changes ? Changes[Noun] : unknown)
}

export interface Transaction extends WithChanges<Store> {
  /**
   * Publishes an event to every node after the commit, and not at all after a rollback. Operations of `Changes` publish
   * the events about keys, sessions and accounts themselves.
   */
  publish(event: Exclude<Event, SubjectEvent>): void
  /**
   * Queues events for the webhook endpoints that subscribe to them, in this transaction. Operations of `Changes`
   * announce their own events themselves.
   */
  announce(...events: WebhookEvent[]): void
  /** The facts of this transaction's changes so far, for the journal and the log of security events. */
  readonly facts: readonly Fact[]
}

export interface AuditedTransaction extends Transaction {
  readonly users: Transaction['users'] & AdministrativeUserChanges
  readonly invitations: Transaction['invitations'] & AdministrativeInvitationChanges
  readonly policies: Transaction['policies'] & AdministrativePolicyChanges
}

export interface Storage {
  /** Reads, and single statements that need no transaction. */
  readonly store: Store
  readonly events: Events
  /**
   * Runs `work` as one transaction and returns its outcome once it is durable.
   *
   * `work` may run more than once (a serialization failure is retried, at most 3 times), so it must have no effect
   * outside the store, wait for nothing but the store, and create no ids: create them before. It returns refusals as
   * outcomes; throwing rolls back.
   *
   * `readBack` is called if the answer to COMMIT was lost: it finds out, by an id created before, whether the
   * transaction was committed, and returns its outcome, or undefined. Without it the result is `unavailable`.
   *
   * @throws KeywayError `unavailable` when the database cannot be reached or stays busy.
   */
  transaction<Outcome>(
    work: (tx: Transaction) => Promise<Outcome>,
    readBack?: (store: Store) => Promise<Outcome | undefined>,
  ): Promise<Outcome>
  /**
   * Runs `work` under in-process mutexes with these names, for work that locks the named rows: of the callers that
   * need the same row one holds a database connection, and the others wait in memory.
   *
   * @throws KeywayError `rate_limited`, at once, if 250 callers wait for one of the names
   */
  runExclusive<Outcome>(rows: readonly string[], work: () => Promise<Outcome>): Promise<Outcome>
  /** The database's clock. */
  readClock(): Promise<Instant>
  close(): Promise<void>
}
