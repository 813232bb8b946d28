import { html } from 'hono/html'
import type { DeviceAuthorization } from '../device-authorizations/device-authorization.ts'
import { KEYS_CREATE, keyScopesOf } from '../device-authorizations/keyway-cli.ts'
import { texts } from '../languages/current.ts'
import { describeClient } from './client-name.ts'
import { meaningOf } from './consent.ts'
import type { PageContext, PageKit } from './kit.ts'
import { formToken, type Html, time } from './layout.ts'

/**
 * A device's request that this person opened by typing its code or by its link. After opening a link the person must
 * compare its code with the one that the device shows.
 */
export interface FoundRequest {
  id: string
  by: 'typed' | 'link'
  code: string
  /** `id`, `by` and `code` with a MAC over them and the session. The form returns it; see `withProof` in device.ts. */
  proof: string
}

/** The page that shows which app asks, from where and for what, with the buttons to decide (RFC 8628 section 5.4). */
export async function renderApproval(
  kit: PageKit,
  c: PageContext,
  authorization: DeviceAuthorization,
  found: FoundRequest,
  problem: string | null = null,
): Promise<Response> {
  const { device } = texts
  const name = await kit.deviceAuthorizations.clientName(authorization)
  const body = html`<section class="card ask">
<h1>${device.asks({ client: name })}</h1>
${found.by === 'link' ? html`<p class="user-code"><span>${device.codeNow}</span><strong>${found.code}</strong></p>` : ''}
${facts(kit, c, authorization, name)}
<h2>${device.mayTitle}</h2>
${permissions(authorization)}
<p class="banner warning">${device.warning}</p>
<form method="post" action="/device/decision">
${formToken(kit.forms.token(c))}
<input type="hidden" name="proof" value="${found.proof}">
${found.by === 'link' ? comparisonField() : ''}
<button class="full" name="decision" value="approve">${device.approve}</button>
<button class="full second" name="decision" value="deny">${device.deny}</button>
</form>
</section>`
  return kit.render(c, { title: device.title, problem }, body, problem ? 400 : 200)
}

function facts(kit: PageKit, c: PageContext, authorization: DeviceAuthorization, name: string): Html {
  const { device } = texts
  const { network } = kit.callerOf(c.req.raw, c.env)
  const networkNote =
    authorization.network === network
      ? device.sameNetwork
      : html`<span class="stands-out">${device.otherNetwork}</span>`
  const program = authorization.client === null ? name : describeClient(authorization.client)
  const claimedName =
    authorization.deviceName === null ? device.unnamed : device.claimed({ name: authorization.deviceName })
  const rows: [string, Html | string][] = [
    [device.who, html`<bdi>${program}</bdi>`],
    [device.device, claimedName],
    [device.from, html`<code>${authorization.address}</code>, ${networkNote}`],
    [device.asked, time(authorization.createdAt)],
    [device.account, html`<bdi>${c.get('signedIn')?.user.email ?? ''}</bdi>`],
  ]
  return html`<dl class="pairs">${rows.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** The requested permissions. For a key each has the name of its scope, for an app only the description. */
function permissions({ scopes }: DeviceAuthorization): Html {
  const isForKey = scopes.includes(KEYS_CREATE)
  const { device, keyForm } = texts
  const meanings: Readonly<Record<string, string | undefined>> = keyForm.scopeMeanings
  const items = isForKey
    ? keyScopesOf(scopes).map(
        scope => html`<li><code>${scope}</code>: ${meanings[scope] ?? device.ownScope}</li>`,
      )
    : scopes.map(scope => html`<li>${meaningOf(scope)}</li>`)
  return html`<p>${isForKey ? device.key : device.access}</p><ul class="grants">${items}</ul>`
}

function comparisonField(): Html {
  return html`<div class="choice"><input type="checkbox" id="compared" name="compared" value="yes"><div><label for="compared">${texts.device.compared}</label></div></div>`
}
