import { type App, mayAskFor } from '../apps/app.ts'
import type { AppStore } from '../apps/app-store.ts'
import type { Session } from './session.ts'

/** The app that a session was opened for; null once it was removed, also if its id was registered again. */
export async function appOf(
  apps: Pick<AppStore, 'find'>,
  { appId, createdAt }: Pick<Session, 'appId' | 'createdAt'>,
): Promise<App | null> {
  const app = await apps.find(appId)
  return app && app.createdAt <= createdAt ? app : null
}

/** What an app may do in a session: what was granted, as far as the app may still ask for it. */
export function scopesOf(app: Pick<App, 'scopes'>, { grant }: Pick<Session, 'grant'>): string[] {
  return (grant?.scopes ?? []).filter(scope => mayAskFor(app, scope))
}
