import { html } from 'hono/html'
import type { Finding } from '../../administration/finding.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { type Html, pageHead, time } from '../layout.ts'
import {
  act,
  isFromOtherSite,
  mayChange,
  reasonField,
  renderAdmin,
  requireReader,
  requireRecentAdministrator,
} from './acting.ts'
import { renderQuestion } from './confirmation.ts'
import { adminTexts } from './texts.ts'

/** /admin/nodes: the running processes, problems of the installation, and the keys that sign tokens. */
export async function renderNodes(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { nodes } = adminTexts
  const { columns } = nodes
  // The full check is expensive, so a link on another site must not cause it.
  const isFullCheck = c.req.query('check') === 'all' && !isFromOtherSite(c)
  const [rows, findings] = await Promise.all([
    kit.administration.nodes(),
    isFullCheck ? kit.examination.whole() : kit.examination.quick(),
  ])
  const isEditable = mayChange(kit, signedIn)
  const body = html`${pageHead(nodes.title, nodes.lead)}
${findingsCard(findings, isFullCheck)}
<section class="card flush"><table class="rows even"><thead><tr><th scope="col">${columns.id}</th><th scope="col">${columns.version}</th><th scope="col">${columns.started}</th><th scope="col" class="amount">${columns.agents}</th></tr></thead><tbody>${rows.map(node => html`<tr><th scope="row"><code>${node.id}</code></th><td data-label="${columns.version}">${node.version}</td><td data-label="${columns.started}">${time(node.startedAt)}</td><td data-label="${columns.agents}" class="amount">${node.connections}</td></tr>`)}</tbody></table></section>
${signingKeysCard(kit, isEditable)}`
  return renderAdmin(kit, c, 'nodes', { title: nodes.title }, body)
}

/** A card with the results of the checks, problems first. */
function findingsCard(findings: readonly Finding[], isFullCheck: boolean): Html {
  const { nodes } = adminTexts
  const problems = findings.filter(({ ok }) => !ok)
  const sortedFindings = [...problems, ...findings.filter(({ ok }) => ok)]
  const row = ({ check, ok, detail }: Finding) =>
    html`<li class="item finding"><span class="tag ${ok ? 'active' : 'revoked'}">${ok ? nodes.ok : nodes.look}</span><div class="what"><span class="name">${check.replaceAll('_', ' ')}</span><p>${detail}</p></div></li>`
  const checkAllLink = isFullCheck ? '' : html` <a href="/admin/nodes?check=all">${nodes.checkAll}</a>`
  return html`<section class="card flush"><div class="card-head"><h2>${nodes.health(problems.length)}</h2><p class="quiet">${isFullCheck ? nodes.checkedAll : nodes.checkedSome}${checkAllLink}</p></div><ul class="list">${sortedFindings.map(row)}</ul></section>`
}

function signingKeysCard(kit: PageKit, isEditable: boolean): Html {
  const { nodes } = adminTexts
  const keys = kit.signingKeys.jwks().keys
  const rotateLink = isEditable
    ? html`<p class="card-foot"><a class="button second" href="/admin/nodes/rotate-signing-keys">${nodes.rotate}</a></p>`
    : ''
  return html`<section class="card flush"><div class="card-head"><h2>${nodes.signingKeys}</h2><p class="quiet">${nodes.signingKeysLead}</p></div><ul class="list">${keys.map(({ kid, alg }) => html`<li class="item"><div class="what"><span class="name">${alg}</span><p><code>${kid}</code></p></div></li>`)}</ul>${rotateLink}</section>`
}

/** GET /admin/nodes/rotate-signing-keys: asks for confirmation. */
export function renderRotateSigningKeys(kit: PageKit, c: PageContext): Response | Promise<Response> {
  requireRecentAdministrator(kit, c, '/admin/nodes')
  const { nodes } = adminTexts
  return renderQuestion(kit, c, {
    section: 'nodes',
    title: nodes.rotateTitle,
    body: html`<p>${nodes.rotateLead}</p>`,
    action: '/admin/nodes/rotate-signing-keys',
    fields: reasonField('reason'),
    submit: nodes.rotate,
    cancel: { href: '/admin/nodes', label: adminTexts.cancel },
  })
}

export function rotateSigningKeys(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/nodes', 'signing_keys_rotated', async (form, by) => {
    await kit.signingKeys.rotate(by(form.get('reason') ?? undefined))
  })
}
