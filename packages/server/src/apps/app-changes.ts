import type { AuditChange, AuditedState, AuditType } from '../audit/audit-event.ts'
import type { App, AppSettings } from './app.ts'

/** Settings whose values are recorded. Of the others, which are names and URLs, only the change is recorded. */
const RECORDED_SETTINGS = ['scopes', 'trusted', 'isPublic', 'tokenAlg', 'requirePkce'] as const

export function appRegistered(app: App): AuditChange {
  return { ...appChange('app.registered', app.id), after: stateOf(app) }
}

/** The record of changed settings; empty if nothing changed. */
export function appChanged(before: App, after: App): AuditChange[] {
  const names = Object.keys(after).filter(
    name => JSON.stringify(before[name as keyof App]) !== JSON.stringify(after[name as keyof App]),
  )
  if (names.length === 0) return []
  const states = { before: stateOf(before), after: { ...stateOf(after), changed: names } }
  return [{ ...appChange('app.updated', after.id), ...states }]
}

export function appRemoved(id: string): AuditChange {
  return appChange('app.removed', id)
}

export function appSecretCreated(id: string, secretId: string): AuditChange {
  return { ...appChange('app.secret_created', id), after: { secret_id: secretId } }
}

export function appSecretRemoved(id: string, secretId: string): AuditChange {
  return { ...appChange('app.secret_removed', id), before: { secret_id: secretId } }
}

function appChange(type: AuditType, id: string): AuditChange {
  return { type, subject: { type: 'app', id, user_id: null }, before: null, after: null }
}

function stateOf(app: AppSettings): AuditedState {
  const entries = RECORDED_SETTINGS.map(name => [name, app[name]] as const)
  return Object.fromEntries(entries)
}
