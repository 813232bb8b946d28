import type { ApiKeyStore } from './api-keys/api-key-store.ts'
import type { AppStore } from './apps/app-store.ts'
import type { ReplayStore } from './backup/replay-store.ts'
import type { BillingStore } from './billing/billing-store.ts'
import type { Instant } from './clock.ts'
import type { EndingStore } from './endings/ending-store.ts'
import type { Event, Events } from './events.ts'
import type { PresenceStore } from './hub/presence-store.ts'
import type { MagicLinkStore } from './magic-links/magic-link-store.ts'
import type { WrongCodeStore } from './magic-links/wrong-code-store.ts'
import type { InstanceStore } from './operations/instance-store.ts'
import type { InboxStore, OutboxStore } from './outbox/outbox-store.ts'
import type { SuppressionStore } from './outbox/suppression-store.ts'
import type { SecurityEventStore } from './security-events/security-event-store.ts'
import type { SessionStore } from './sessions/session-store.ts'
import type { SigningKeyStore } from './signing-keys/signing-key-store.ts'
import type { UserStore } from './users/user-store.ts'

/** What must be remembered: one port a noun. */
export interface Store {
  users: UserStore
  billing: BillingStore
  apiKeys: ApiKeyStore
  apps: AppStore
  endings: EndingStore
  inbox: InboxStore
  instance: InstanceStore
  magicLinks: MagicLinkStore
  outbox: OutboxStore
  presence: PresenceStore
  replay: ReplayStore
  securityEvents: SecurityEventStore
  sessions: SessionStore
  signingKeys: SigningKeyStore
  suppressions: SuppressionStore
  wrongCodes: WrongCodeStore
}

export interface Transaction extends Store {
  /** Tells every node, once this transaction is durable; never when it is not. */
  publish(event: Event): void
}

export interface Storage {
  /** Reads, and single statements that need no transaction. */
  readonly store: Store
  readonly events: Events
  /**
   * Runs `work` as one transaction and returns its outcome once it is durable.
   *
   * `work` may run more than once (a serialization failure is retried, at most 3 times), so it has no effect
   * outside the store, waits for nothing but the store, and makes no id: ids are made before. It returns
   * refusals as outcomes; what it throws undoes everything.
   *
   * `landed` answers for a COMMIT whose answer was lost: it reads back, by an id made before, whether the
   * transaction is there, and returns its outcome, or undefined. Without it such a transaction is `unavailable`.
   *
   * @throws KeywayError `unavailable` when the database cannot be reached or stays busy.
   */
  transaction<Outcome>(
    work: (tx: Transaction) => Promise<Outcome>,
    landed?: (store: Store) => Promise<Outcome | undefined>,
  ): Promise<Outcome>
  /**
   * Runs `work`, which is going to lock the named rows, when no other caller of this process is at work under one of
   * the names: of those who want the same row one has a database connection, and the others wait in memory.
   *
   * @throws KeywayError `rate_limited`, at once, where 250 wait under one of the names
   */
  inTurn<Outcome>(rows: readonly string[], work: () => Promise<Outcome>): Promise<Outcome>
  /** The database's clock. */
  readClock(): Promise<Instant>
  close(): Promise<void>
}
