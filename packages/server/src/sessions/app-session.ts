import { type App, mayRequestScope } from '../apps/app.ts'
import type { AppStore } from '../apps/app-store.ts'
import type { Session } from './session.ts'

/** The app that a session was opened for; null once that app was removed, even if its id was registered again. */
export async function appOf(
  apps: Pick<AppStore, 'find'>,
  { appId, createdAt }: Pick<Session, 'appId' | 'createdAt'>,
): Promise<App | null> {
  const app = await apps.find(appId)
  return app && app.createdAt <= createdAt ? app : null
}

/** The scopes of an app's session: the granted ones that the app may still ask for. */
export function scopesOf(app: Pick<App, 'scopes'>, { grant }: Pick<Session, 'grant'>): string[] {
  return (grant?.scopes ?? []).filter(scope => mayRequestScope(app, scope))
}
