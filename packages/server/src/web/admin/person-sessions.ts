import { html } from 'hono/html'
import { texts } from '../../languages/current.ts'
import type { Session } from '../../sessions/session.ts'
import type { User } from '../../users/user.ts'
import { describeClient } from '../client-name.ts'
import type { PageKit } from '../kit.ts'
import { ago, formToken, type Html } from '../layout.ts'
import { adminTexts } from './texts.ts'

/**
 * The sessions of a person, with forms to end one or, except on the reader's own page, all of them.
 *
 * @param token the form token; null for no forms
 * @param current the id of the reader's own session on the reader's own page, where it cannot be ended; null elsewhere
 */
export function sessionsCard(
  kit: PageKit,
  user: User,
  sessions: readonly Session[],
  { token, current }: { token: string | null; current: string | null },
  more: Html | '',
): Html {
  const { person } = adminTexts
  const now = kit.clock.now()
  const endAllForm =
    token && current === null && sessions.length > 0
      ? html`<form method="post" action="/admin/users/${user.id}/end-sessions">${formToken(token)}<button class="second small harm">${person.endSessions}</button></form>`
      : ''
  const rows = sessions.map(session => sessionRow(session, user, now, { token, current }))
  return html`<section class="card flush"><div class="card-head spread"><div><h2>${person.sessions}</h2><p class="quiet">${user.status === 'suspended' ? person.sessionsSuspended : person.endSessionsLead}</p></div>${endAllForm}</div>${rows.length > 0 ? html`<ul class="list">${rows}</ul>` : html`<p class="card-foot quiet">${person.noSessions}</p>`}${more}</section>`
}

function sessionRow(
  session: Session,
  { id }: User,
  now: number,
  { token, current }: { token: string | null; current: string | null },
): Html {
  const { person } = adminTexts
  const client = session.client ? describeClient(session.client) : texts.sessions.unknownClient
  const appTag = session.kind === 'app' ? html` <span class="tag">${session.appId}</span>` : ''
  const isCurrent = session.id === current
  const endForm =
    token && !isCurrent
      ? html`<form class="buttons" method="post" action="/admin/users/${id}/end-session">${formToken(token)}<input type="hidden" name="session" value="${session.id}"><button class="second small harm">${texts.sessions.end}<span class="unseen"> ${client}, ${session.network}</span></button></form>`
      : ''
  return html`<li class="item"><div class="what"><span class="name">${client}</span>${appTag}${isCurrent ? html` <span class="tag active">${person.thisSession}</span>` : ''}<p><code>${session.network}</code> · ${person.signedIn} ${ago(session.createdAt, now)}</p></div><p class="when">${texts.sessions.used} ${ago(session.lastUsedAt, now)}</p>${endForm}</li>`
}
