import type { Hono } from 'hono'
import { html } from 'hono/html'
import { parseId } from '../ids.ts'
import { MAX_PAGE_SIZE } from '../paging.ts'
import { idleEnd, type Session } from '../sessions/session.ts'
import { formToken, time } from './layout.ts'
import type { PageContext, PageKit, PageVariables } from './pages.ts'
import { words } from './words.ts'

/** /sessions: where the person is signed in, and the way to end it. */
export function sessionPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/sessions', c => renderSessions(kit, c))
  app.post('/sessions/end-others', async c => {
    const { user, session } = kit.requireSession(c)
    await kit.forms.read(c)
    await kit.sessions.endOthers(user.id, session.id, kit.callerOf(c.req.raw, c.env))
    c.set('notice', words.sessions.othersEnded)
    return renderSessions(kit, c)
  })
  app.post('/sessions/:id/end', async c => {
    const { user, session } = kit.requireSession(c)
    await kit.forms.read(c)
    const id = parseId(c.req.param('id')) ?? ''
    await kit.sessions.end(user.id, id, kit.callerOf(c.req.raw, c.env))
    if (id === session.id) return c.redirect('/sign-in?out=1', 303)
    c.set('notice', words.sessions.ended)
    return renderSessions(kit, c)
  })
}

async function renderSessions(kit: PageKit, c: PageContext): Promise<Response> {
  const { user, session: current } = kit.requireSession(c)
  const { rows } = await kit.sessions.list(user.id, { limit: MAX_PAGE_SIZE, after: null })
  const body = html`<div class="spread"><h1>${words.sessions.title}</h1>
${
  rows.length > 1
    ? html`<form method="post" action="/sessions/end-others">${formToken(kit.forms.token(c))}<button class="quiet">${words.sessions.endOthers}</button></form>`
    : ''
}</div>
<p class="lead">${words.sessions.lead}</p>
<div class="card"><ul class="list">${rows.map(session => row(kit, c, session, session.id === current.id))}</ul></div>`
  return kit.render(c, { title: words.sessions.title, current: '/sessions' }, body)
}

function row(kit: PageKit, c: PageContext, session: Session, isCurrent: boolean) {
  const { columns } = words.sessions
  const client = session.client ? describeClient(session.client) : words.sessions.unknownClient
  return html`<li class="item">
<div><span class="name">${client}</span> ${isCurrent ? html`<span class="tag active">${words.sessions.current}</span>` : ''}<br><span class="quiet-text mono">${session.network}</span></div>
<dl><dt>${columns.used}</dt><dd>${time(session.lastUsedAt)}</dd><dt>${columns.created}</dt><dd>${time(session.createdAt)}</dd><dt>${columns.expires}</dt><dd>${time(idleEnd(session, kit.lifetimes))}</dd></dl>
<form class="actions" method="post" action="/sessions/${session.id}/end">${formToken(kit.forms.token(c))}<button class="quiet" aria-label="${words.sessions.end} ${client}">${words.sessions.end}</button></form>
</li>`
}

const BROWSERS: [RegExp, string][] = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
]
const SYSTEMS: [RegExp, string][] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
]

/** `Firefox on Linux`; what is no browser is named as it names itself. */
export function describeClient(client: string): string {
  const browser = BROWSERS.find(([pattern]) => pattern.test(client))?.[1]
  const system = SYSTEMS.find(([pattern]) => pattern.test(client))?.[1]
  if (!browser) return client.length > 60 ? `${client.slice(0, 59)}…` : client
  return system ? `${browser} on ${system}` : browser
}
