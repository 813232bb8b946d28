import type { Instant } from '../clock.ts'
import { idOf } from '../ids.ts'
import { randomToken, sha256 } from '../secrets.ts'

/** Prefix of app secrets, so that people and secret scanners recognise them. */
export const APP_SECRET_PREFIX = 'sva_'
const APP_SECRET_BYTES = 32
/** Maximum number of valid secrets of an app: creating another one removes the oldest. */
export const MAX_APP_SECRETS = 2

/** A secret of an app, of which only the SHA-256 is stored. */
export interface AppSecret {
  id: string
  createdAt: Instant
}

export interface NewAppSecret extends AppSecret {
  /** Returned only when the secret is created. */
  secret: string
}

export function newAppSecret(): string {
  return APP_SECRET_PREFIX + randomToken(APP_SECRET_BYTES)
}

/**
 * The id of a secret is derived from its stored hash and time, so it is the same after a restore and needs no column.
 */
export function secretIdOf({ hash, createdAt }: { hash: string; createdAt: Instant }): string {
  return idOf(createdAt, Buffer.from(sha256(hash), 'base64url').toString('hex'))
}

/** The secret that creating another one removes; null if it removes none. @param secrets newest first */
export function removedByNext<Secret>(secrets: readonly Secret[]): Secret | null {
  return secrets[MAX_APP_SECRETS - 1] ?? null
}
