import { html } from 'hono/html'
import type { PageContext, PageKit } from '../kit.ts'
import { pageHead } from '../layout.ts'
import { renderAdmin, requireReader } from './acting.ts'
import { auditRows } from './audit-row.ts'
import { mailRow } from './mails.ts'
import { periodLinks, periodOf, reportOf, statisticsCharts } from './statistics-charts.ts'
import { adminTexts } from './texts.ts'

const LATEST_ROWS = 5

/** /admin: running nodes, queues, statistics over time, and the latest audited acts. */
export async function renderOverview(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  const { overview, people } = adminTexts
  const page = { limit: LATEST_ROWS, after: null }
  const period = periodOf(c.req.query('period'))
  // Stores what this node has counted since its last flush, so that the statistics include it. If that fails, the
  // counts are kept for a later flush.
  await kit.statistics.flush().catch(() => {})
  const [nodes, findings, depth, failed, acts, buckets, peopleNow] = await Promise.all([
    kit.administration.nodes(),
    kit.examination.quick(),
    kit.store.outbox.depth(kit.clock.now()),
    kit.administration.mails('failed', page),
    kit.store.audit.list({}, page),
    kit.statistics.report(reportOf(period, kit.clock.now())),
    kit.statistics.people(),
  ])
  const agents = nodes.reduce((sum, { connections }) => sum + connections, 0)
  const problems = findings.filter(({ ok }) => !ok).length
  const body = html`${pageHead(overview.title, overview.lead)}
<form method="get" action="/admin/users" class="inline spaced" role="search"><div class="field"><label for="query">${people.query}</label><input id="query" name="query" autocomplete="off" spellcheck="false"></div><button>${people.search}</button></form>
<div class="columns">
<section class="card"><h2><a href="/admin/nodes">${adminTexts.nav.nodes}</a></h2><p>${overview.running(nodes.length, agents)} <span class="tag ${problems === 0 ? 'active' : 'revoked'}">${adminTexts.nodes.health(problems)}</span></p></section>
<section class="card"><h2><a href="/admin/mails">${adminTexts.nav.mails}</a></h2><p>${overview.mail(depth.queued)}</p></section>
</div>
${periodLinks(period)}
${statisticsCharts(buckets, period, { people: peopleNow, agents })}
<section class="card flush"><div class="card-head"><h2>${overview.failed}</h2></div>${failed.rows.length > 0 ? html`<ul class="list">${failed.rows.map(mail => mailRow(mail, kit.clock.now(), null))}</ul>` : html`<p class="card-foot quiet">${adminTexts.none}</p>`}</section>
<section class="card flush"><div class="card-head"><h2>${overview.acts}</h2></div>${acts.rows.length > 0 ? html`<ul class="list">${await auditRows(kit, acts.rows)}</ul><p class="card-foot"><a href="/admin/audit">${overview.allActs}</a></p>` : html`<p class="card-foot quiet">${adminTexts.none}</p>`}</section>`
  return renderAdmin(kit, c, 'overview', { title: overview.title }, body)
}
