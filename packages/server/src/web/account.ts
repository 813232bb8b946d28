import type { Hono } from 'hono'
import { html } from 'hono/html'
import { texts } from '../languages/current.ts'
import { isFresh } from '../sessions/reauthentication.ts'
import { MAX_USER_NAME_LENGTH, type User } from '../users/user.ts'
import { accountAppPages } from './account-apps.ts'
import { renderBalance } from './account-balance.ts'
import { accountChangePages, addressCard, deletionCard, type RefusedAccountForm } from './account-changes.ts'
import { accountFrame } from './account-frame.ts'
import { assertStillSignedIn, eventPages } from './events.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { accountLanguageForm } from './language-choice.ts'
import { formToken, type Html } from './layout.ts'
import { richText } from './rich.ts'
import { usageChart } from './usage-chart.ts'

/** /account: the profile, with links to the pages of balance, usage, apps and security events. */
export function accountPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/account', c => renderAccount(kit, c))
  app.get('/account/balance', c => renderBalance(kit, c))
  app.get('/account/usage', c => renderUsage(kit, c))
  accountAppPages(app, kit)
  eventPages(app, kit)
  accountChangePages(app, kit, (c, refused) => renderAccount(kit, c, refused))
  app.post('/account/name', async c => {
    const { user } = kit.requireSession(c)
    const name = (kit.forms.read(c).get('name') ?? '').replace(/\p{Cc}/gu, ' ').trim()
    await kit.users.rename(user.id, name ? [...name].slice(0, MAX_USER_NAME_LENGTH).join('') : null)
    return c.redirect('/account?done=name_changed', 303)
  })
  app.get('/account/export', c => {
    const { user, session } = kit.requireSession(c)
    if (!isFresh(session, kit.clock.now())) {
      kit.cookies.rememberDestination(c, '/account')
      return c.redirect('/sign-in?again=1', 303)
    }
    return download(
      c,
      user,
      kit.exportOf(user, 'person', () => assertStillSignedIn(kit, c)),
    )
  })
}

export function download(c: PageContext, { id }: User, body: ReadableStream): Response {
  return c.body(body, 200, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Disposition': `attachment; filename="keyway-${id}.json"`,
  })
}

async function renderAccount(
  kit: PageKit,
  c: PageContext,
  refused: RefusedAccountForm | null = null,
): Promise<Response> {
  const { account } = texts
  const { user } = kit.requireSession(c)
  const change = await kit.emailChanges.pending(user.id)
  const typedEmail = c.req.query('new_email') ?? ''
  const token = kit.forms.token(c)
  const body = html`<section class="card"><h2>${account.profile}</h2>${profile(user, token)}</section>
${addressCard(change, token, refused, typedEmail)}
<section class="card spread"><div><h2>${account.export}</h2><p class="quiet">${account.exportLead}</p></div><a class="button second" href="/account/export" download>${account.exportSubmit}</a></section>
${deletionCard(user, token)}`
  const options = {
    title: account.title,
    current: '/account',
    isRefused: refused !== null,
    formAt: '/account',
  }
  return kit.render(c, options, accountFrame('/account', account, body), refused ? 400 : 200)
}

function profile(user: User, token: string): Html {
  const { account } = texts
  return html`<p class="quiet">${richText(account.signsInAs, { email: html`<strong>${user.email}</strong>` })}</p>
<form method="post" action="/account/name" class="inline">${formToken(token)}<div class="field"><label for="name">${account.name}</label><input id="name" name="name" maxlength="${MAX_USER_NAME_LENGTH}" autocomplete="name" value="${user.name ?? ''}"></div><button class="second">${account.save}</button></form>
${accountLanguageForm(formToken(token))}`
}

async function renderUsage(kit: PageKit, c: PageContext): Promise<Response> {
  const { account, usage } = texts
  const { user } = kit.requireSession(c)
  const body = html`<section class="card"><h2>${usage.title}</h2>${usageChart(await kit.usage.ofUser(user.id))}</section>`
  const head = { title: account.usage, lead: account.usageLead }
  return kit.render(
    c,
    { title: account.usage, current: '/account' },
    accountFrame('/account/usage', head, body),
  )
}
