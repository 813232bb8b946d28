import type { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { DAY, type Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import { texts } from '../languages/current.ts'
import { decodeCursor, encodeCursor, type Position } from '../paging.ts'
import {
  EVENT_GROUPS,
  EVENTS_KEPT_FOR,
  type EventGroup,
  type SecurityEvent,
  type SecurityEventType,
  typesOfGroup,
} from '../security-events/security-event.ts'
import {
  EXPORT_BATCH,
  SECURITY_EVENT_FORMATS,
  securityEventExport,
} from '../security-events/security-event-object.ts'
import type { SecurityEventFilter } from '../security-events/security-event-store.ts'
import { accountFrame } from './account-frame.ts'
import { describeClient } from './client-name.ts'
import { labelOf } from './key-list.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { ago, type Html } from './layout.ts'
import { notFound } from './problem.ts'
import { richText } from './rich.ts'

const ROWS_PER_PAGE = 50

/** /account/events: the security events, filtered by group or key, as a list and as a file. */
export function eventPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/account/events', c => renderEvents(kit, c))
  app.get('/account/events/:file', c => exportEvents(kit, c))
}

interface EventView {
  group: EventGroup | null
  keyId: string | null
}

/** Reads the filters from the query of a request; unknown values are ignored. */
function viewOf(c: PageContext): EventView {
  const group = EVENT_GROUPS.find(each => each === c.req.query('group')) ?? null
  return { group, keyId: parseId(c.req.query('key') ?? '') }
}

function filterOf({ group, keyId }: EventView): SecurityEventFilter {
  return { types: group ? typesOfGroup(group) : undefined, keyId: keyId ?? undefined }
}

function queryOf({ group, keyId }: EventView, more: Record<string, string> = {}): string {
  return new URLSearchParams({ ...(group && { group }), ...(keyId && { key: keyId }), ...more }).toString()
}

async function renderEvents(kit: PageKit, c: PageContext): Promise<Response> {
  const { user } = kit.requireSession(c)
  const { account, eventList } = texts
  const view = viewOf(c)
  const after = decodeCursor(c.req.query('cursor') ?? '')
  const { rows, next } = await kit.securityEvents.list(
    user.id,
    { limit: ROWS_PER_PAGE, after },
    filterOf(view),
  )
  const olderQuery = next && queryOf(view, { cursor: encodeCursor(next) })
  const body = html`${groupLinks(view)}
${await keyNote(kit, user.id, view)}
<section class="card flush">${rows.length === 0 ? html`<p class="none">${eventList.empty}</p>` : html`<ul class="list">${await eventRows(kit, user.id, rows)}</ul>`}</section>
${after || olderQuery ? html`<nav class="spread" aria-label="${eventList.pages}">${after ? html`<a href="/account/events?${queryOf(view)}">${eventList.newest}</a>` : ''}${olderQuery ? html`<a href="/account/events?${olderQuery}">${eventList.older}</a>` : ''}</nav>` : ''}
<p>${eventList.export} <a href="/account/events/export.csv?${queryOf(view)}" download>CSV</a> · <a href="/account/events/export.jsonl?${queryOf(view)}" download>JSON</a></p>`
  const head = { title: account.events, lead: eventList.lead({ days: EVENTS_KEPT_FOR / DAY }) }
  return kit.render(
    c,
    { title: account.events, current: '/account' },
    accountFrame('/account/events', head, body),
  )
}

function groupLinks({ group, keyId }: EventView): Html {
  const { eventList } = texts
  const links = [null, ...EVENT_GROUPS].map(each => {
    const currentMark = each === group ? raw(' aria-current="true"') : ''
    const label = each ? eventList.groups[each] : eventList.all
    return html`<a href="/account/events?${queryOf({ group: each, keyId })}"${currentMark}>${label}</a>`
  })
  return html`<nav class="filter" aria-label="${eventList.filter}">${links}</nav>`
}

async function keyNote(kit: PageKit, userId: string, { group, keyId }: EventView): Promise<Html | ''> {
  if (keyId === null) return ''
  const key = (await kit.apiKeys.findMany([keyId])).get(keyId)
  if (key?.userId !== userId) throw notFound()
  const name = html`<a href="/keys/${key.id}"><bdi>${labelOf(key)}</bdi></a>`
  return html`<p class="quiet">${richText(texts.eventList.ofKey, { name })} <a href="/account/events?${queryOf({ group, keyId: null })}">${texts.eventList.everyKey}</a></p>`
}

/**
 * Security events as rows of a list, each with the key, or else the client of the session, that it is about.
 *
 * @param place where the rows are shown: on the page of a `key` its name is left out, on a page of an `admin` links
 *   lead to other such pages
 */
export async function eventRows(
  kit: PageKit,
  userId: string,
  events: readonly SecurityEvent[],
  place: 'account' | 'key' | 'admin' = 'account',
): Promise<Html[]> {
  const now = kit.clock.now()
  const ids = (of: (event: SecurityEvent) => string | null) => [
    ...new Set(events.map(of).filter(id => id !== null)),
  ]
  const [keys, sessions] = await Promise.all([
    kit.apiKeys.findMany(ids(({ keyId }) => keyId)),
    kit.sessions.findMany(
      userId,
      ids(({ sessionId }) => sessionId),
    ),
  ])
  return events.map(event => {
    const key = event.keyId === null || place === 'key' ? undefined : keys.get(event.keyId)
    // The row of a sign-in shows the client already.
    const showsSession = event.sessionId !== null && event.type !== 'sign_in'
    const session = showsSession ? sessions.get(event.sessionId!) : undefined
    const subject = key
      ? html`<a href="${place === 'admin' ? '/admin' : ''}/keys/${key.id}"><bdi>${labelOf(key)}</bdi></a>`
      : session?.client
        ? texts.eventList.session({ client: describeClient(session.client) })
        : ''
    return row(event, now, subject)
  })
}

/** Types whose name does not say who acted. If such an event has no network and no client, the operator caused it. */
const TYPES_WITHOUT_ACTOR: readonly SecurityEventType[] = [
  'api_key_revoked',
  'session_ended',
  'account_suspended',
  'account_activated',
]

/** The origin of an event: its client and network as far as they are known, or the operator. */
export function originOf({ type, client, network }: SecurityEvent): Html {
  if (!client && !network && TYPES_WITHOUT_ACTOR.includes(type)) return html`${texts.eventList.byOperator}`
  return html`${client ? html`<bdi>${describeClient(client)}</bdi>` : ''} ${network ? html`<code>${network}</code>` : ''}`
}

function row(event: SecurityEvent, now: Instant, subject: Html | string): Html {
  const { type, at } = event
  return html`<li class="item event"><span>${texts.account.eventNames[type]}${subject ? html` <span class="about">${subject}</span>` : ''}</span><span class="quiet">${originOf(event)}</span><span class="when">${ago(at, now)}</span></li>`
}

/** /account/events/export.csv and .jsonl: all matching events, newest first. */
function exportEvents(kit: PageKit, c: PageContext): Response {
  const { user } = kit.requireSession(c)
  const [, format] = /^export\.(csv|jsonl)$/.exec(c.req.param('file') ?? '') ?? []
  if (format !== 'csv' && format !== 'jsonl') throw notFound()
  const filter = filterOf(viewOf(c))
  const read = (after: Position | null) =>
    kit.securityEvents.list(user.id, { limit: EXPORT_BATCH, after }, filter)
  const body = securityEventExport(format, read, () => assertStillSignedIn(kit, c))
  return c.body(body, 200, {
    'Content-Type': SECURITY_EVENT_FORMATS[format].type,
    'Content-Disposition': `attachment; filename="security-events.${format}"`,
  })
}

/** Rejects if the session has ended; called repeatedly while a response is streamed. */
export async function assertStillSignedIn(kit: PageKit, c: PageContext): Promise<void> {
  const cookie = kit.cookies.session(c)
  if (!cookie || !(await kit.sessions.authenticateCookie(cookie)))
    throw new KeywayError('authentication_required', 'The session has ended.')
}
