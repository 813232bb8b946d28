import type { MicroDollars } from '../billing/money.ts'
import type { Brand } from '../brand/brand.ts'
import type { Language } from '../languages/languages.ts'
import type { RequestLimit, WhenCutOff } from '../limits/limit.ts'
import type { LogLevel } from '../log.ts'
import type { RateWindow } from '../rate-windows.ts'
import type { EmailAddress } from '../users/email-address.ts'

/** All settings, validated. */
export interface Config {
  /** An origin without a trailing slash: base of all URLs, and JWT issuer. */
  publicUrl: string
  host: string
  port: number
  /** Number of processes that serve the port together; 1 with SQLite. */
  processes: number
  dataDir: string
  database: { engine: 'sqlite'; file: string } | { engine: 'postgres'; url: string }
  events: { kind: 'in-process' } | { kind: 'postgres'; url: string } | { kind: 'redis'; url: string }
  /**
   * Decoded secrets: the first one encrypts, all of them decrypt. With SQLite and without KEYWAY_SECRET, empty until
   * `loadOrCreateSecret` (keyway-secret.ts) has read or created the file `secret` in `dataDir`.
   */
  secrets: Buffer[]
  mail:
    | { kind: 'inbox' }
    | {
        kind: 'smtp'
        host: string
        port: number
        secure: boolean
        requireTls: boolean
        user: string | null
        password: string | null
      }
    | { kind: 'resend'; key: string }
    | { kind: 'postmark'; token: string }
  /** If null, the endpoint for bounce reports answers every call with 404. */
  mailHookSecret: string | null
  mailFrom: { name: string; address: string }
  supportEmail: string
  /** Texts that replace the built-in ones, by language. */
  texts: ReadonlyMap<Language, unknown>
  brand: Brand
  adminEmails: EmailAddress[]
  /** How long audit rows are kept. */
  auditDays: number
  verifyUrl: string
  magicLinkLimits: RateWindow[]
  /** Null if this limit is off. */
  magicLinkNetworkLimits: RateWindow[] | null
  /** Limit of failed sign-ins, key exchanges and refreshes of one client network. */
  failureLimits: RateWindow[]
  accessTokenSeconds: number
  refreshIdleSeconds: number
  sessionSeconds: number
  refreshGraceSeconds: number
  trustedProxies: string[]
  corsOrigins: string[]
  clientRegistration: boolean
  clientMetadataDocuments: boolean
  /** Networks, besides the public Internet, in which the URLs of apps and webhooks may be. */
  webhookPrivateNetworks: string[]
  /**
   * A charge that takes a balance from this amount or above to below it sends the webhook event `balance.low`; 0: none.
   */
  lowBalance: MicroDollars
  maxActiveKeys: number
  /** Limit of successful exchanges of one key on one node. */
  exchangeLimits: RateWindow[]
  /** Request limits of every key; its owner may only set lower ones. */
  keyLimits: RequestLimit[]
  /** Request limits of a key that is created without any. */
  keyDefaults: RequestLimit[]
  /** Limits of all keys of one person together. */
  personLimits: RequestLimit[]
  limitsWhenCutOff: WhenCutOff
  /** Limit of keys that one user creates, rotations included. */
  keyCreationLimits: RateWindow[]
  hubMaxConnections: number
  /** Messages that one user may have delivered on one node in a second, counted for each receiver. */
  hubDeliveries: number
  /** MiB of these messages in a second. */
  hubDeliveryMib: number
  /** The port of `/metrics`; null if it is on the main port. */
  metricsPort: number | null
  /** The Bearer token that `/metrics` requires; null if none. */
  metricsToken: string | null
  journalDir: string | null
  autoMigrate: boolean
  logLevel: LogLevel
}
