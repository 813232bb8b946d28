import { html } from 'hono/html'
import { isAppId, isClientUrl } from '../apps/app.ts'
import type { NamedConsent } from '../consents/consent.ts'
import { texts } from '../languages/current.ts'
import { scopeItem } from './consent.ts'
import type { PageContext, PageKit } from './kit.ts'
import { day, formToken, type Html } from './layout.ts'
import { notFound } from './problem.ts'

/** The section of /account with the apps that have access; absent where there are none. */
export function consentSection(consents: readonly NamedConsent[], token: string): Html | '' {
  const { account } = texts.apps
  if (consents.length === 0) return ''
  return html`<section class="card flush"><div class="card-head"><h2>${account.title}</h2><p class="quiet">${account.lead}</p></div><ul class="list">${consents.map(each => row(each, token))}</ul></section>`
}

function row({ appId, name, scopes, grantedAt }: NamedConsent, token: string): Html {
  const { account } = texts.apps
  return html`<li class="item"><div class="what"><span class="name">${name}</span><ul class="quiet">${scopes.map(scopeItem)}</ul></div><p class="when">${account.since} ${day(grantedAt)}</p>
<form class="buttons" method="post" action="/account/apps/${encodeURIComponent(appId)}/withdraw">${formToken(token)}<button class="second small harm">${account.withdraw}<span class="unseen"> ${name}</span></button></form></li>`
}

/** POST /account/apps/:app/withdraw */
export async function withdrawConsent(kit: PageKit, c: PageContext, appId: string): Promise<Response> {
  const { user } = kit.requireSession(c)
  kit.forms.read(c)
  if (!isAppId(appId) && !isClientUrl(appId)) throw notFound()
  await kit.consents.withdraw(user.id, appId, kit.callerOf(c.req.raw, c.env))
  return c.redirect('/account?done=consent_withdrawn', 303)
}
