import { html } from 'hono/html'
import type { PageContext, PageKit } from '../kit.ts'
import { pageHead, time } from '../layout.ts'
import { renderAdmin, requireReader } from './acting.ts'
import { adminTexts } from './texts.ts'

/** /admin/nodes: the running processes. */
export async function renderNodes(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  const { nodes } = adminTexts
  const { columns } = nodes
  const rows = await kit.administration.nodes()
  const body = html`${pageHead(nodes.title, nodes.lead)}
<section class="card flush"><table class="rows even"><thead><tr><th scope="col">${columns.id}</th><th scope="col">${columns.version}</th><th scope="col">${columns.started}</th><th scope="col" class="amount">${columns.agents}</th></tr></thead><tbody>${rows.map(node => html`<tr><th scope="row"><code>${node.id}</code></th><td data-label="${columns.version}">${node.version}</td><td data-label="${columns.started}">${time(node.startedAt)}</td><td data-label="${columns.agents}" class="amount">${node.connections}</td></tr>`)}</tbody></table></section>`
  return renderAdmin(kit, c, 'nodes', { title: nodes.title }, body)
}
