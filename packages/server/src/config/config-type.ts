import type { RequestLimit, WhenCutOff } from '../limits/limit.ts'
import type { LogLevel } from '../log.ts'
import type { RateWindow } from '../rate-windows.ts'

/** Every setting, validated. */
export interface Config {
  /** An origin without a trailing slash: base address and JWT issuer. */
  publicUrl: string
  host: string
  port: number
  dataDir: string
  database: { engine: 'sqlite'; file: string } | { engine: 'postgres'; url: string }
  events: { kind: 'in-process' } | { kind: 'postgres'; url: string } | { kind: 'redis'; url: string }
  /** Decoded; the first seals. */
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
  /** Null: reports of bounces are refused. */
  mailHookSecret: string | null
  mailFrom: { name: string; address: string }
  supportEmail: string
  verifyUrl: string
  magicLinkLimits: RateWindow[]
  /** Null: off. */
  magicLinkNetworkLimits: RateWindow[] | null
  /** Failures of one network a minute. */
  failureLimits: RateWindow[]
  accessTokenSeconds: number
  refreshIdleSeconds: number
  sessionSeconds: number
  refreshGraceSeconds: number
  trustedProxies: string[]
  corsOrigins: string[]
  maxActiveKeys: number
  /** Successful exchanges of one key on one node. */
  exchangeLimits: RateWindow[]
  /** See `LimitPolicy`. */
  keyLimits: RequestLimit[]
  keyDefaults: RequestLimit[]
  personLimits: RequestLimit[]
  limitsWhenCutOff: WhenCutOff
  /** Keys that one person creates, rotations included. */
  keyCreationLimits: RateWindow[]
  hubMaxConnections: number
  metricsPort: number | null
  /** The Bearer token of a scraper; null: none is required. */
  metricsToken: string | null
  journalDir: string | null
  autoMigrate: boolean
  logLevel: LogLevel
}
