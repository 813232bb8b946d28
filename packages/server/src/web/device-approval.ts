import { SCOPES } from '@keyway/sdk/protocol'
import { html } from 'hono/html'
import type { DeviceAuthorization } from '../device-authorizations/device-authorization.ts'
import { KEYS_CREATE, keyScopesOf } from '../device-authorizations/keyway-cli.ts'
import { appTexts } from './app-texts.ts'
import { describeClient } from './client-name.ts'
import { deviceTexts } from './device-texts.ts'
import type { PageContext, PageKit } from './kit.ts'
import { formToken, type Html, time } from './layout.ts'

/** A request that this person found: by a typed code, or by a link, whose code is to be compared. */
export interface FoundRequest {
  id: string
  by: 'typed' | 'link'
  code: string
  /** Returned by the form. */
  proof: string
}

/** Who asks, from where and for what, with the decision (RFC 8628 section 5.4). */
export async function renderApproval(
  kit: PageKit,
  c: PageContext,
  asked: DeviceAuthorization,
  found: FoundRequest,
  problem: string | null = null,
): Promise<Response> {
  const name = await kit.deviceAuthorizations.clientName(asked)
  const body = html`<section class="card ask">
<h1>${deviceTexts.asks(name)}</h1>
${facts(kit, c, asked, found, name)}
<h2>${deviceTexts.mayTitle}</h2>
${permissions(asked)}
<p class="banner warning">${deviceTexts.warning}</p>
<form method="post" action="/device/decision">
${formToken(kit.forms.token(c))}
<input type="hidden" name="proof" value="${found.proof}">
${found.by === 'link' ? comparison() : ''}
<div class="buttons"><button name="decision" value="approve">${deviceTexts.approve}</button><button class="second" name="decision" value="deny">${deviceTexts.deny}</button></div>
</form>
</section>`
  return kit.render(c, { title: deviceTexts.title, problem }, body, problem ? 400 : 200)
}

function facts(
  kit: PageKit,
  c: PageContext,
  asked: DeviceAuthorization,
  { by, code }: FoundRequest,
  name: string,
): Html {
  const { network } = kit.callerOf(c.req.raw, c.env)
  const relation = asked.network === network ? deviceTexts.sameNetwork : deviceTexts.otherNetwork
  const program = asked.client === null ? name : describeClient(asked.client)
  const device = asked.deviceName === null ? deviceTexts.unnamed : deviceTexts.claimed(asked.deviceName)
  const rows: [string, Html | string][] = [
    [deviceTexts.who, program],
    [deviceTexts.device, device],
    [deviceTexts.from, html`<code>${asked.address}</code>, ${relation}`],
    [deviceTexts.asked, time(asked.createdAt)],
    [deviceTexts.account, c.get('signedIn')?.user.email ?? ''],
  ]
  if (by === 'link') rows.unshift([deviceTexts.codeNow, html`<strong class="figure">${code}</strong>`])
  return html`<dl class="facts">${rows.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** Of a key by the names of its scopes, which it shows elsewhere, too; of an app in words. */
function permissions({ scopes }: DeviceAuthorization): Html {
  const isForKey = scopes.includes(KEYS_CREATE)
  const meanings: Record<string, string> = SCOPES
  const items = isForKey
    ? keyScopesOf(scopes).map(
        scope => html`<li><code>${scope}</code>: ${meanings[scope] ?? deviceTexts.ownScope}</li>`,
      )
    : scopes.map(scope => html`<li>${appTexts.scopes[scope] ?? appTexts.ownScope(scope)}</li>`)
  return html`<p>${isForKey ? deviceTexts.key : deviceTexts.access}</p><ul>${items}</ul>`
}

function comparison(): Html {
  return html`<div class="choice"><input type="checkbox" id="compared" name="compared" value="yes"><div><label for="compared">${deviceTexts.compared}</label></div></div>`
}
