import type { Hono } from 'hono'
import { html, raw } from 'hono/html'
import type { Instant } from '../clock.ts'
import { texts } from '../languages/current.ts'
import { MAGIC_LINK_LIFETIME } from '../magic-links/magic-link.ts'
import type { Inbox, InboxItem } from '../outbox/outbox.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { ago, emptyList, type Html, pageHead, time } from './layout.ts'
import { notFound, wantsJson } from './problem.ts'

/** Maximum number of mails in the list; older ones are found by a search. */
const SHOWN_MAILS = 50
const MAX_QUERY_LENGTH = 100
const PREVIEW_LENGTH = 200

/**
 * CSP for the HTML of a mail, which is untrusted: no scripts, no forms, and no requests except for the operator's logo.
 * Links may open new tabs.
 */
function mailPolicy({ publicUrl, brand }: PageKit): string {
  const image = brand.logo ? ` img-src ${publicUrl}/assets/;` : ''
  return `default-src 'none'; style-src 'unsafe-inline';${image} sandbox allow-popups allow-popups-to-escape-sandbox; frame-ancestors 'self'`
}

/** /inbox: locally stored mail. Requests that are not local (`isLocal`), such as those of other machines, get a 404. */
export function inboxPages(app: Hono<PageVariables>, kit: PageKit, inbox: Inbox): void {
  app.use('/inbox/*', async (c, next) => {
    if (!kit.isLocal(c.req.raw, c.env)) return c.notFound()
    c.header('Referrer-Policy', 'no-referrer')
    await next()
  })
  app.get('/inbox', async c => {
    const mails = await mailsFor(inbox, c)
    return wantsJson(c) ? c.json({ data: mails.map(toJson) }) : renderInbox(kit, c, mails)
  })
  app.get('/inbox/events', c => streamInbox(kit, c, inbox))
  app.get('/inbox/:id', async c => {
    const mail = await findMail(inbox, c)
    const view = c.req.query('view') ?? 'html'
    return renderMail(kit, c, mail, { name: view, text: await textOf(inbox, mail, view) })
  })
  app.get('/inbox/:id/html', async c => {
    const mail = await findMail(inbox, c)
    c.header('Content-Security-Policy', mailPolicy(kit))
    c.header('X-Frame-Options', 'SAMEORIGIN')
    return c.html(mail.html.replace('<head>', '<head><base target="_blank">'))
  })
}

/** The mails that match the address and the search text in the query; an invalid address matches none. */
async function mailsFor(inbox: Inbox, c: PageContext): Promise<InboxItem[]> {
  const to = c.req.query('to')
  const recipient = to ? parseEmailAddress(to) : null
  const mails = to && !recipient ? [] : await inbox.list(recipient)
  const searchText = searchTextOf(c).toLowerCase()
  if (!searchText) return mails
  return mails.filter(mail =>
    [mail.subject, mail.to, mail.text].some(text => text.toLowerCase().includes(searchText)),
  )
}

function searchTextOf(c: PageContext): string {
  return (c.req.query('query') ?? '').trim().slice(0, MAX_QUERY_LENGTH)
}

async function findMail(inbox: Inbox, c: PageContext): Promise<InboxItem> {
  const mail = (await inbox.list(null)).find(({ id }) => id === c.req.param('id'))
  if (!mail) throw notFound()
  return mail
}

/** The plain text of a view; null for the HTML view, which uses an iframe. */
async function textOf(inbox: Inbox, mail: InboxItem, view: string): Promise<string | null> {
  if (view === 'text') return mail.text
  return view === 'source' ? ((await inbox.source(mail.id)) ?? texts.inbox.noSource) : null
}

function toJson({ createdAt, ...rest }: InboxItem) {
  return { ...rest, created_at: new Date(createdAt).toISOString() }
}

async function renderInbox(kit: PageKit, c: PageContext, mails: readonly InboxItem[]): Promise<Response> {
  const { inbox } = texts
  const query = searchTextOf(c)
  const to = c.req.query('to')
  const eventsQuery = new URLSearchParams({ ...(to && { to }), ...(query && { query }) })
  const body = html`${pageHead(inbox.title, inbox.lead)}
<form method="get" action="/inbox" class="inline spaced" role="search"><div class="field"><label class="unseen" for="query">${inbox.search}</label><input id="query" name="query" type="search" value="${query}" maxlength="${MAX_QUERY_LENGTH}" placeholder="${inbox.searchExample}"></div><button class="second">${inbox.search}</button></form>
<p class="unseen" role="status" data-announce></p>
<section class="card flush" data-stream="/inbox/events?${eventsQuery}" data-lost="${texts.live.reconnecting}">${mailList({ mails, query, spentIds: await spentIdsOf(kit, mails) }, kit.clock.now())}</section>`
  return kit.render(c, { title: inbox.title, current: '/inbox' }, body)
}

/** The ids of the shown mails whose sign-in links no longer sign anybody in: used, expired or unknown ones. */
async function spentIdsOf(kit: PageKit, mails: readonly InboxItem[]): Promise<Set<string>> {
  const ids = mails.slice(0, SHOWN_MAILS).map(async mail => ((await isSpent(kit, mail)) ? mail.id : null))
  return new Set((await Promise.all(ids)).filter(id => id !== null))
}

async function isSpent(kit: PageKit, { link, code, createdAt }: InboxItem): Promise<boolean> {
  if (!link || !code) return false
  if (createdAt + MAGIC_LINK_LIFETIME <= kit.clock.now()) return true
  const { searchParams } = new URL(link)
  const email = parseEmailAddress(searchParams.get('email') ?? '')
  return !email || (await kit.magicLinks.inspect(searchParams.get('token') ?? '', email)).state !== 'live'
}

interface MailList {
  mails: readonly InboxItem[]
  query: string
  spentIds: ReadonlySet<string>
}

function mailList({ mails, query, spentIds }: MailList, now: Instant): Html {
  const { inbox } = texts
  if (mails.length === 0)
    return query ? emptyList(inbox.notFound, '') : emptyList(inbox.empty, inbox.emptyLead)
  const hiddenCount = mails.length - SHOWN_MAILS
  return html`<ul class="list mails">${mails.slice(0, SHOWN_MAILS).map(mail => mailRow(mail, now, spentIds))}</ul>${hiddenCount > 0 ? html`<p class="card-foot quiet">${inbox.hidden({ count: hiddenCount })}</p>` : ''}`
}

function mailRow(mail: InboxItem, now: Instant, spentIds: ReadonlySet<string>): Html {
  const { inbox } = texts
  return html`<li class="item" data-row="${mail.id}"><div class="what"><a class="name" href="/inbox/${mail.id}"><bdi>${mail.subject}</bdi></a><p>${inbox.to} <bdi>${mail.to}</bdi></p><p class="preview" dir="auto">${previewOf(mail.text)}</p></div><p class="when">${ago(mail.createdAt, now)}</p>${signInParts(mail, spentIds.has(mail.id))}</li>`
}

/** The link and the code of a mail, if it has them, or a tag if they are spent. */
function signInParts({ id, subject, link, code }: InboxItem, isSpent: boolean): Html {
  const { inbox, keys } = texts
  if (isSpent) return html`<div class="buttons end"><span class="tag">${inbox.spent}</span></div>`
  return html`<div class="buttons end">${code ? html`<code class="chip" id="code-${id}">${code}</code><button type="button" class="second small copy" data-copy="code-${id}" data-copied="${keys.copied}">${inbox.copyCode}</button>` : ''}${link ? html`<a class="button second small" href="${link}">${inbox.open}<span class="unseen"> ${subject}</span></a>` : ''}</div>`
}

/** The beginning of the text after its heading, on one line. */
function previewOf(text: string): string {
  const line = text
    .slice(0, 6 * PREVIEW_LENGTH)
    .replace(/^.*\n/, '')
    .replace(/\s+/g, ' ')
    .trim()
  return line.length > PREVIEW_LENGTH ? `${line.slice(0, PREVIEW_LENGTH - 1)}…` : line
}

/**
 * Sends the list of mails whenever a mail has arrived or a sign-in link was spent. Needs no session: access is limited
 * to this machine.
 */
function streamInbox(kit: PageKit, c: PageContext, inbox: Inbox): Response {
  let lastNewestId: string | null = null
  let lastState: string | null = null
  return kit.streams.serve(c, 'inbox', async send => {
    const mails = await mailsFor(inbox, c)
    const newestId = mails[0]?.id ?? ''
    const spentIds = await spentIdsOf(kit, mails)
    const state = [newestId, ...spentIds].join()
    if (state !== lastState) {
      const list = { mails, query: searchTextOf(c), spentIds }
      await send('list', String(await mailList(list, kit.clock.now())))
    }
    if (lastNewestId !== null && newestId !== lastNewestId) await send('announce', texts.inbox.arrived)
    lastNewestId = newestId
    lastState = state
    return true
  })
}

async function renderMail(
  kit: PageKit,
  c: PageContext,
  mail: InboxItem,
  view: { name: string; text: string | null },
): Promise<Response> {
  const { inbox } = texts
  const views: [string, string][] = [
    ['html', inbox.html],
    ['text', inbox.text],
    ['source', inbox.source],
  ]
  const body = html`<p class="back"><a href="/inbox">${inbox.back}</a></p>
<div class="head"><div><h1 dir="auto">${mail.subject}</h1><p class="lead">${inbox.to} <bdi>${mail.to}</bdi> · ${time(mail.createdAt)}</p></div>${signInParts(mail, await isSpent(kit, mail))}</div>
<nav class="filter" aria-label="${inbox.view}">${views.map(([name, label]) => html`<a href="/inbox/${mail.id}?view=${name}"${name === view.name ? raw(' aria-current="true"') : ''}>${label}</a>`)}</nav>
${
  view.text === null
    ? html`<iframe class="mail" title="${mail.subject}" sandbox="allow-popups allow-popups-to-escape-sandbox" src="/inbox/${mail.id}/html"></iframe>`
    : html`<pre class="source" dir="auto" tabindex="0">${view.text}</pre>`
}`
  return kit.render(c, { title: mail.subject, current: '/inbox' }, body)
}
