import type { Hono } from 'hono'
import { html } from 'hono/html'
import { KeywayError } from '../errors.ts'
import { parseEmailAddress } from '../users/user.ts'
import { streamWhile } from './agents.ts'
import { type Html, time } from './layout.ts'
import type { InboxItem, PageContext, PageInbox, PageKit, PageVariables } from './pages.ts'
import { words } from './words.ts'

/** A mail is somebody else's HTML: no script, no form, no request of any kind. */
const MAIL_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; sandbox allow-popups allow-popups-to-escape-sandbox; frame-ancestors 'self'"

/** /inbox: the mail that stays on this machine. Whoever is not on this machine finds nothing here. */
export function inboxPages(app: Hono<PageVariables>, kit: PageKit, inbox: PageInbox): void {
  app.use('/inbox/*', async (c, next) => {
    if (!kit.isLocal(c.req.raw, c.env)) return c.notFound()
    await next()
  })
  app.get('/inbox', async c => {
    const to = c.req.query('to')
    const recipient = to ? parseEmailAddress(to) : null
    const mails = to && !recipient ? [] : await inbox.list(recipient)
    if (wantsJson(c)) return c.json({ data: mails.map(toJson) })
    const body = html`<h1>${words.inbox.title}</h1><p class="lead">${words.inbox.lead}</p>
<div class="card" data-stream="/inbox/events" aria-live="polite">${mailList(mails)}</div>`
    return kit.render(c, { title: words.inbox.title, current: '/inbox' }, body)
  })
  app.get('/inbox/events', c =>
    streamWhile(kit, c, async (send, seen) => {
      const mails = await inbox.list(null)
      const state = mails[0]?.id ?? ''
      if (seen !== null && state !== seen) await send('list', String(await mailList(mails)))
      return state
    }),
  )
  app.get('/inbox/:id', async c => renderMail(kit, c, await find(inbox, c), c.req.query('view') ?? 'html'))
  app.get('/inbox/:id/html', async c => {
    const mail = await find(inbox, c)
    c.header('Content-Security-Policy', MAIL_POLICY)
    c.header('X-Frame-Options', 'SAMEORIGIN')
    return c.html(mail.html.replace('<head>', '<head><base target="_blank">'))
  })
}

function wantsJson(c: PageContext): boolean {
  const accept = c.req.header('accept') ?? ''
  return accept.includes('application/json') && !accept.includes('text/html')
}

async function find(inbox: PageInbox, c: PageContext): Promise<InboxItem> {
  const mail = (await inbox.list(null)).find(({ id }) => id === c.req.param('id'))
  if (!mail) throw new KeywayError('not_found', words.errors.notFoundLead)
  return mail
}

function toJson(mail: InboxItem) {
  const { createdAt, ...rest } = mail
  return { ...rest, created_at: new Date(createdAt).toISOString() }
}

function mailList(mails: InboxItem[]): Html {
  if (mails.length === 0)
    return html`<p class="empty"><strong>${words.inbox.empty}</strong>${words.inbox.emptyLead}</p>`
  return html`<ul class="list">${mails.map(mail => html`<li class="item" data-row="${mail.id}"><div><a class="name" href="/inbox/${mail.id}">${mail.subject}</a><br><span class="quiet-text">${words.inbox.to} ${mail.to}</span></div><span>${mail.code ? html`<code>${mail.code}</code>` : ''}</span>${time(mail.createdAt)}</li>`)}</ul>`
}

function renderMail(kit: PageKit, c: PageContext, mail: InboxItem, view: string) {
  const views: [string, string][] = [
    ['html', words.inbox.html],
    ['text', words.inbox.text],
    ['source', words.inbox.source],
  ]
  const body = html`<p><a href="/inbox">${words.inbox.back}</a></p>
<div class="spread"><h1>${mail.subject}</h1><nav class="filter" aria-label="View">${views.map(([name, label]) => html`<a href="/inbox/${mail.id}?view=${name}" ${name === view ? html`aria-current="true"` : ''}>${label}</a>`)}</nav></div>
<p class="quiet-text">${words.inbox.to} ${mail.to} · ${time(mail.createdAt)}</p>
${
  view === 'html'
    ? html`<iframe class="mail" title="${mail.subject}" sandbox="allow-popups allow-popups-to-escape-sandbox" src="/inbox/${mail.id}/html"></iframe>`
    : html`<pre class="source" tabindex="0">${view === 'text' ? mail.text : mail.html}</pre>`
}`
  c.header('Referrer-Policy', 'no-referrer')
  return kit.render(c, { title: mail.subject, current: '/inbox' }, body)
}
