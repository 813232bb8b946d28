import { html } from 'hono/html'
import type { AuditEvent, AuditedState, Subject } from '../../audit/audit-event.ts'
import { labelOf } from '../key-list.ts'
import type { PageKit } from '../kit.ts'
import { type Html, time } from '../layout.ts'
import { type PersonLink, personLinks } from './person-links.ts'
import { adminTexts } from './texts.ts'

type KeyNames = Awaited<ReturnType<PageKit['apiKeys']['findMany']>>

/** The list items of acts. One query reads the addresses of all people in them, another the names of all keys. */
export async function auditRows(kit: PageKit, events: readonly AuditEvent[]): Promise<Html[]> {
  const keyIds = events.flatMap(({ subject: { type, id } }) => (type === 'api_key' && id ? [id] : []))
  const [personLink, keys] = await Promise.all([
    personLinks(
      kit,
      events.flatMap(({ actor, subject }) => [actor.id, subject.user_id]),
    ),
    kit.apiKeys.findMany([...new Set(keyIds)]),
  ])
  return events.map(event => auditRow(event, personLink, keys))
}

function auditRow(event: AuditEvent, personLink: PersonLink, keys: KeyNames): Html {
  const { audit } = adminTexts
  const { type, at, subject, before, after, reason, network } = event
  const subjectLinks = [subject.user_id && personLink(subject.user_id), objectOf(subject, keys)].filter(
    Boolean,
  )
  return html`<li class="item"><div class="what"><span class="name">${audit.types[type]}</span>${subjectLinks.map(each => html` <span class="about">${each}</span>`)}<p>${actorOf(event, personLink)}${network ? html` · <code>${network}</code>` : ''}</p>${reason?.text ? html`<p><q>${reason.text}</q></p>` : ''}${changesOf(before, after).map(change => html`<p><code>${change}</code></p>`)}${idsOf(event)}</div><p class="when">${time(at)}</p></li>`
}

/** Says who performed an act, for example "by the keyway command". */
export function actorOf({ actor }: Pick<AuditEvent, 'actor'>, personLink: PersonLink): Html | string {
  const { by } = adminTexts.audit
  return actor.type === 'user' && actor.id !== null
    ? html`${by.user} ${personLink(actor.id)}`
    : by[actor.type]
}

/** A link to the key, app or webhook that an act is about; empty for other subjects and unknown keys. */
function objectOf({ type, id }: Subject, keys: KeyNames): Html | '' {
  if (id === null) return ''
  const key = keys.get(id)
  if (type === 'api_key' && key) return html`<a href="/admin/keys/${id}">${labelOf(key)}</a>`
  if (type === 'app') return html`<a href="/admin/apps/${encodeURIComponent(id)}">${id}</a>`
  if (type === 'webhook') return html`<a href="/admin/webhooks/${id}">${adminTexts.audit.endpoint}</a>`
  return ''
}

/** The ids of an act as in the exports, for copying. */
function idsOf({ actor, subject, requestId, sequence }: AuditEvent): Html {
  const { ids } = adminTexts.audit
  const labelledIds: [string, string | number | null][] = [
    [ids.row, sequence],
    [ids.actor, actor.id],
    [ids.key, actor.key_id],
    [ids.session, actor.session_id],
    [subject.type.replaceAll('_', ' '), subject.id],
    [ids.person, subject.user_id === subject.id ? null : subject.user_id],
    [ids.request, requestId],
  ]
  const rows = labelledIds.filter(([, value]) => value !== null)
  return html`<details class="ids"><summary>${ids.title}</summary><dl>${rows.map(([label, value]) => html`<div><dt>${label}</dt><dd><code>${value}</code></dd></div>`)}</dl></details>`
}

/** A line for each property that an act changed, as `role: user → admin`; none for one that was unset and stays so. */
function changesOf(before: AuditedState | null, after: AuditedState | null): string[] {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
  return names.flatMap(name => {
    const [oldValue, newValue] = [before?.[name], after?.[name]].map(inWords)
    if (oldValue === newValue) return []
    if (oldValue === undefined && (newValue === NONE || newValue === 'false')) return []
    return [`${nameInWords(name)}: ${[oldValue, newValue].filter(text => text !== undefined).join(' → ')}`]
  })
}

const NONE = 'none'

function inWords(value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value
  if (value === null || (Array.isArray(value) && value.length === 0)) return NONE
  return Array.isArray(value) && value.every(each => typeof each === 'string')
    ? value.join(', ')
    : JSON.stringify(value)
}

/** Splits a name such as `max_key_lifetime_days` or `requirePkce` into words. */
function nameInWords(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`).replaceAll('_', ' ')
}
