import type { Hono } from 'hono'
import { html } from 'hono/html'
import { parseId } from '../ids.ts'
import { texts } from '../languages/current.ts'
import type { Session } from '../sessions/session.ts'
import { expiryIfUnused } from '../sessions/session-lifetime.ts'
import { describeClient } from './client-name.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { ago, formToken, type Html, pageHead, time } from './layout.ts'
import { notFound } from './problem.ts'

/** Maximum number of sessions on the page; the API lists all of them. */
const SHOWN_SESSIONS = 100

/** /sessions: lists sessions, that of this browser first, and ends them. */
export function sessionPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/sessions', c => renderSessions(kit, c))
  app.post('/sessions/end-others', async c => {
    const { user, session } = kit.requireSession(c)
    kit.forms.read(c)
    await kit.sessions.endOthers(user.id, session.id, kit.callerOf(c.req.raw, c.env))
    return c.redirect('/sessions?done=others_ended', 303)
  })
  app.post('/sessions/:id/end', async c => {
    const { user, session } = kit.requireSession(c)
    kit.forms.read(c)
    const id = parseId(c.req.param('id'))
    if (!id) throw notFound()
    await kit.sessions.end(user.id, id, kit.callerOf(c.req.raw, c.env))
    if (id !== session.id) return c.redirect('/sessions?done=session_ended', 303)
    kit.cookies.clearSession(c)
    return c.redirect('/sign-in?done=signed_out', 303)
  })
}

async function renderSessions(kit: PageKit, c: PageContext): Promise<Response> {
  const { user, session: current } = kit.requireSession(c)
  const sessionPage = await kit.sessions.list(user.id, { limit: SHOWN_SESSIONS, after: null })
  const rows = sessionPage.rows.toSorted(
    (left, right) => Number(right.id === current.id) - Number(left.id === current.id),
  )
  const token = kit.forms.token(c)
  const appNames = await namesOfApps(kit, rows)
  const body = html`${pageHead(texts.sessions.title, texts.sessions.lead, rows.length > 1 ? endOthersForm(token) : '')}
<section class="card flush"><ul class="list">${rows.map(session => row(kit, session, token, session.id === current.id, appNames))}</ul></section>`
  return kit.render(c, { title: texts.sessions.title, current: '/sessions' }, body)
}

/** The names of the apps for which sessions were opened, by app id. A removed app has its id as name. */
async function namesOfApps(kit: PageKit, sessions: readonly Session[]): Promise<Map<string, string>> {
  const ids = new Set(sessions.filter(({ kind }) => kind === 'app').map(({ appId }) => appId))
  const nameLookUps = [...ids].map(async id => [id, (await kit.store.apps.find(id))?.name ?? id] as const)
  return new Map(await Promise.all(nameLookUps))
}

function endOthersForm(token: string): Html {
  return html`<form method="post" action="/sessions/end-others">${formToken(token)}<button class="second harm">${texts.sessions.endOthers}</button></form>`
}

function row(
  kit: PageKit,
  session: Session,
  token: string,
  isCurrent: boolean,
  appNames: ReadonlyMap<string, string>,
): Html {
  const { sessions } = texts
  const now = kit.clock.now()
  const client = session.client ? describeClient(session.client) : sessions.unknownClient
  return html`<li class="item">
<div class="what"><span class="name"><bdi>${client}</bdi></span>${tags(session, isCurrent, appNames)}<p><code>${session.network}</code></p></div>
<p class="when">${sessions.used} ${ago(session.lastUsedAt, now)}<br>${sessions.created} ${ago(session.createdAt, now)}<br>${sessions.ends} ${time(expiryIfUnused(session, kit.lifetimes))}</p>
<form class="buttons" method="post" action="/sessions/${session.id}/end">${formToken(token)}<button class="second small harm">${isCurrent ? texts.nav.signOut : sessions.end}<span class="unseen"> ${client}</span></button></form>
</li>`
}

/** Tags that say whether a session is this browser's, and for which app it was opened. */
function tags({ kind, appId }: Session, isCurrent: boolean, appNames: ReadonlyMap<string, string>): Html {
  const { current, ofApp } = texts.sessions
  const currentTag = isCurrent ? html` <span class="tag active">${current}</span>` : ''
  return html`${currentTag}${kind === 'app' ? html` <span class="tag">${ofApp({ appId: appNames.get(appId) ?? appId })}</span>` : ''}`
}
