import { html } from 'hono/html'
import type { AuditType } from '../../audit/audit-event.ts'
import type { PageKit } from '../kit.ts'
import { type Html, time } from '../layout.ts'
import { actorOf } from './audit-row.ts'
import { personLinks } from './person-links.ts'

/** The last act of this type on a person or an object, with actor, time and reason; null if the audit has none. */
export async function lastAct(kit: PageKit, subject: string, type: AuditType): Promise<Html | null> {
  const { rows } = await kit.store.audit.list({ subject, type }, { limit: 1, after: null })
  const [event] = rows
  if (!event) return null
  const personLink = await personLinks(kit, [event.actor.id])
  const reason = event.reason?.text ? html`: <q>${event.reason.text}</q>` : ''
  return html`${actorOf(event, personLink)}, ${time(event.at)}${reason}`
}
