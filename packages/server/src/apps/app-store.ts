import type { Instant } from '../clock.ts'
import type { App, LiveCredentials } from './app.ts'

export interface AppPage {
  limit: number
  /** Only apps whose ids sort after this one; null: from the first app on. */
  after: string | null
  /** If true, only apps for which `isSelfDescribed` is true; if false, only those that the operator registered. */
  selfRegistered?: boolean
}

/** The rows of removed apps are kept, but only `removedAt` finds them. */
export interface AppStore {
  find(id: string): Promise<App | null>
  findByAudience(audience: string): Promise<App | null>
  list(): Promise<App[]>
  /** Apps in the order of their ids; one more than `limit` if others follow the page. */
  page(wanted: AppPage): Promise<App[]>
  /** The redirect URIs of all public clients. */
  publicRedirectUris(): Promise<string[]>
  /** False if the id is taken. The id of a removed app is free. */
  insert(app: App): Promise<boolean>
  /** The app, locked until the transaction ends; null if there is none. */
  lock(id: string): Promise<App | null>
  /** Writes the settings of `AppSettings`. */
  update(app: App): Promise<void>
  /**
   * Counts the keys and sessions with this `app_id` that were created before `now` and are live at that time. Scans
   * both tables, so it is for operators only.
   */
  countLive(id: string, now: Instant): Promise<LiveCredentials>
  /** The SHA-256s of the accepted secrets, newest first. */
  secrets(appId: string): Promise<string[]>
  /** Like `secrets`, each with the time at which it was added. */
  datedSecrets(appId: string): Promise<{ hash: string; createdAt: Instant }[]>
  /** When the app with this id was removed; null if an app with this id is registered, or never was. */
  removedAt(id: string): Promise<Instant | null>
}

/** Changes of apps. Each that changes the accepted secrets also records this for the journal (endings/facts.ts). */
export interface AppChanges {
  /** Adds a secret (SHA-256) and keeps the newest two. */
  addSecret(appId: string, secretHash: string, at: Instant): Promise<void>
  /** Removes one secret; false if the app does not have it. */
  removeSecret(appId: string, secretHash: string): Promise<boolean>
  /** Removes the app's secrets; false if it has none. */
  dropSecrets(appId: string): Promise<boolean>
  /**
   * Marks an app as removed, deletes its secrets and frees its audience. Its row stays, since ledger entries name the
   * app. False if there is no such app, or it was removed before.
   */
  remove(id: string, at: Instant): Promise<boolean>
}
