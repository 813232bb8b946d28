import type { Instant } from '../clock.ts'
import type { App, LiveCredentials } from './app.ts'

export interface AppStore {
  find(id: string): Promise<App | null>
  findByAudience(audience: string): Promise<App | null>
  list(): Promise<App[]>
  /** False if the id is taken. */
  insert(app: App): Promise<boolean>
  /** Counts live credentials with this label, created before `now`. Scans all keys and sessions: for operators only. */
  countLive(id: string, now: Instant): Promise<LiveCredentials>
  /** The SHA-256s of the accepted secrets, newest first. */
  secrets(appId: string): Promise<string[]>
  /** The same, with the time at which each was added. */
  datedSecrets(appId: string): Promise<{ hash: string; createdAt: Instant }[]>
}

/** Recorded by endings/facts.ts in the transaction that calls them. */
export interface AppChanges {
  /** Adds a secret (SHA-256) and keeps the newest two. */
  addSecret(appId: string, secretHash: string, at: Instant): Promise<void>
}
