import type { Instant } from '../clock.ts'
import { parseId } from '../ids.ts'

/** A registered application. `audience` is the audience of agent tokens for its own services. */
export interface App {
  id: string
  name: string
  firstParty: boolean
  audience: string | null
  verifyUrl: string | null
  createdAt: Instant
  /** Its rights cover keys and sessions of its label that were created from this instant on; 0 means all. */
  coversFrom: Instant
}

/**
 * Whether an app may read what a key's owner attached to it: the app that the key is for, if it was registered or
 * adopted the key before the key was made (decision 14), and first-party apps.
 */
export function covers(
  app: Pick<App, 'id' | 'firstParty' | 'coversFrom'>,
  key: { appId: string; createdAt: Instant },
): boolean {
  return app.firstParty || (app.id === key.appId && key.createdAt >= app.coversFrom)
}

/** Numbers of keys that can be exchanged and of sessions that can be refreshed. */
export interface LiveCredentials {
  keys: number
  sessions: number
}

/** The app of a sign-in without an `app_id`. */
export const DEFAULT_APP_ID = 'console'
/** The app of a key that is created without one. */
export const DEFAULT_KEY_APP_ID = 'service-sdk'

const APP_ID = /^[a-z0-9][a-z0-9._-]{0,63}$/

/**
 * An app id is a label; registering it gives it a name, a secret and rights (decision 14). UUIDs are reserved for ids
 * of the service.
 */
export function isAppId(text: string): boolean {
  return APP_ID.test(text) && parseId(text) === null
}
