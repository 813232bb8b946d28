import { html, raw } from 'hono/html'
import { type ApiKey, allows, statusOf } from '../api-keys/api-key.ts'
import { MAX_KEY_NAME_LENGTH } from '../api-keys/key-name.ts'
import { DEFAULT_OVERLAP_SECONDS } from '../api-keys/rotation.ts'
import { DAY, HOUR, type Instant, SECOND } from '../clock.ts'
import { texts } from '../languages/current.ts'
import type { SecurityEvent } from '../security-events/security-event.ts'
import { describeClient, programOf } from './client-name.ts'
import { eventRows, originOf } from './events.ts'
import { expiryText, labelOf, lastUseText, statusTag } from './key-list.ts'
import { limitsCard, networksCard, type RefusedForm } from './key-settings.ts'
import type { PageContext, PageKit } from './kit.ts'
import { ago, day, factList, formToken, type Html, time } from './layout.ts'
import { streamedCard, viewOf } from './live.ts'
import { richText } from './rich.ts'
import { usageChart } from './usage-chart.ts'

/** Maximum number of the key's security events that are shown, the newest ones. */
const SHOWN_EVENTS = 5
/** Maximum number of connections on the page that confirms a revocation. */
const SHOWN_CONNECTIONS = 5

/** The choices of how long the old key works after a rotation: seconds, and the name of the text. */
const OVERLAPS = [
  [0, 'overlapNow'],
  [HOUR / SECOND, 'overlapHour'],
  [DEFAULT_OVERLAP_SECONDS, 'overlapDay'],
  [(7 * DAY) / SECOND, 'overlapWeek'],
] as const

export function overlapOf(form: URLSearchParams): number {
  const requestedSeconds = Number(form.get('overlap') ?? DEFAULT_OVERLAP_SECONDS)
  return OVERLAPS.find(([seconds]) => seconds === requestedSeconds)?.[0] ?? DEFAULT_OVERLAP_SECONDS
}

export async function renderKey(
  kit: PageKit,
  c: PageContext,
  key: ApiKey,
  shown: { problem?: string | undefined; networks?: RefusedForm; limits?: RefusedForm },
  status = 200,
): Promise<Response> {
  const { keys } = texts
  const now = kit.clock.now()
  const state = statusOf(key, now)
  const page = { limit: SHOWN_EVENTS, after: null }
  const { rows: events } = await kit.securityEvents.list(key.userId, page, { keyId: key.id })
  const revocation = events.find(({ type }) => type === 'api_key_revoked')
  const body = html`<p class="back"><a href="/keys">${keys.back}</a></p>
<div class="head"><div><h1><bdi>${key.name ?? keys.unnamed}</bdi></h1><p class="lead"><code>${key.keyPrefix}…</code> ${statusTag(key, state)}</p></div></div>
<section class="card">${keyFacts(key, now, 'own', revocation)}</section>
${state === 'active' && allows(key.scopes, 'agent:connect') ? await agentsSection(kit, c, key) : ''}
<section class="card"><h2>${texts.usage.title}</h2>${usageChart(await kit.usage.ofKey(key.userId, key.id), { isOver: state !== 'active', lastUsedAt: key.lastUsedAt, now })}</section>
${await eventsSection(kit, key, events)}
${state === 'active' ? actions(key, kit.forms.token(c), shown) : ''}`
  const isRefused = Boolean(shown.networks?.problem ?? shown.limits?.problem)
  return kit.render(
    c,
    {
      title: labelOf(key),
      current: '/keys',
      problem: shown.problem ?? null,
      isRefused,
      formAt: `/keys/${key.id}`,
    },
    body,
    status,
  )
}

/** The live connections of a key, which script.js keeps up to date. */
async function agentsSection(kit: PageKit, c: PageContext, key: ApiKey): Promise<Html> {
  const { nav, live } = texts
  return html`<section class="card of-key"><div class="spread"><h2>${nav.agents}</h2><a href="/keys/${key.id}/live">${live.watch}</a></div>${streamedCard(await viewOf(kit, c))}</section>`
}

async function eventsSection(
  kit: PageKit,
  key: ApiKey,
  events: readonly SecurityEvent[],
): Promise<Html | ''> {
  if (events.length === 0) return ''
  return html`<section class="card flush"><div class="card-head"><h2>${texts.account.events}</h2></div><ul class="list">${await eventRows(kit, key.userId, events, 'key')}</ul><p class="card-foot"><a href="/account/events?key=${key.id}">${texts.eventList.all}</a></p></section>`
}

/**
 * @param place for an `admin`, links lead to the pages of administrators
 * @param revocation the security event of the key's revocation, if it is known
 */
export function keyFacts(
  key: ApiKey,
  now: Instant,
  place: 'own' | 'admin' = 'own',
  revocation?: SecurityEvent,
): Html {
  const { keys } = texts
  const { columns } = keys
  const state = statusOf(key, now)
  const everything = place === 'own' ? keys.everything : keys.everythingOfOwner
  const rows: [string, Html | string][] = [
    [columns.access, key.scopes ? scopesInWords(key.scopes) : everything],
    [
      columns.networks,
      key.allowedNetworks.length ? html`<code>${key.allowedNetworks.join(', ')}</code>` : keys.anyNetwork,
    ],
    [columns.created, day(key.createdAt)],
    [columns.used, lastUseText(key, state, now, at => ago(at, now))],
    ...lastUseOriginRows(key),
    [columns.expires, key.expiresAt === null ? keys.never : expiryText(key, state, now)],
  ]
  if (key.revokedAt !== null)
    rows.push([
      columns.revoked,
      html`${day(key.revokedAt)}${revocation ? html` · ${originOf(revocation)}` : ''}`,
    ])
  if (key.replacedBy)
    rows.push([
      columns.replacedBy,
      html`<a href="${place === 'own' ? '' : '/admin'}/keys/${key.replacedBy}">${keys.successor}</a>`,
    ])
  return factList(rows)
}

function scopesInWords(scopes: readonly string[]): Html {
  const words: Record<string, string | undefined> = texts.keyForm.scopeWords
  return html`<ul class="bare">${scopes.map(scope => html`<li>${words[scope] ?? ''} <code>${scope}</code></li>`)}</ul>`
}

function lastUseOriginRows({ lastUsedFrom: from }: ApiKey): [string, Html][] {
  if (!from) return []
  const program = from.client ? html` ·&nbsp;<bdi>${describeClient(from.client)}</bdi>` : ''
  return [[texts.keys.usedFrom, html`<code>${from.network}</code>${program}`]]
}

function actions(key: ApiKey, token: string, shown: { networks?: RefusedForm; limits?: RefusedForm }): Html {
  const { keys } = texts
  const rotation = html`<section class="card"><h2>${keys.rotateTitle}</h2><p class="quiet">${keys.rotateLead}</p>
<form method="post" action="/keys/${key.id}/rotate" class="inline">${formToken(token)}<div class="field"><label for="overlap">${keys.overlap}</label><select id="overlap" name="overlap">${OVERLAPS.map(([seconds, label]) => html`<option value="${seconds}"${seconds === DEFAULT_OVERLAP_SECONDS ? raw(' selected') : ''}>${keys[label]}</option>`)}</select></div><button class="second">${keys.rotate}</button></form></section>`
  return html`<div class="columns"><div>
<section class="card"><h2>${keys.name}</h2>
<form method="post" action="/keys/${key.id}/rename" class="inline">${formToken(token)}<div class="field"><label class="unseen" for="name">${keys.name}</label><input id="name" name="name" maxlength="${MAX_KEY_NAME_LENGTH}" value="${key.name ?? ''}" autocomplete="off"></div><button class="second">${keys.rename}</button></form></section>
${key.replacedBy ? '' : rotation}
</div><div>
${networksCard(key, token, shown.networks)}
${limitsCard(key, token, shown.limits)}
</div></div>
<section class="card spread"><div><h2>${keys.revokeCard}</h2><p class="quiet">${keys.revokeCardLead}</p></div><a class="button danger" href="/keys/${key.id}/revoke">${keys.revoke}</a></section>`
}

export async function renderRevoke(kit: PageKit, c: PageContext, key: ApiKey): Promise<Response> {
  const { keys } = texts
  const agents = await kit.agents.connections(key.userId)
  const connections = agents.filter(agent => agent.keyId === key.id)
  const title = keys.revokeTitle({ name: labelOf(key) })
  const body = html`<section class="card ask">
<h1>${title}</h1>
<p class="quiet"><code>${key.keyPrefix}…</code> · ${richText(texts.units.labelled, { label: keys.columns.used, value: key.lastUsedAt ? time(key.lastUsedAt) : keys.never })}</p>
<p>${keys.revokeLead}</p>
<ul><li>${keys.revokeExchange}</li><li>${keys.revokeTokens}</li><li>${effectOnConnections(connections.length)}${connections.length ? html`<ul>${connections.slice(0, SHOWN_CONNECTIONS).map(agent => html`<li><code>${agent.address}</code> · <bdi>${programOf(agent.client)}</bdi></li>`)}</ul>` : ''}</li></ul>
<form class="buttons" method="post" action="/keys/${key.id}/revoke">${formToken(kit.forms.token(c))}<button class="danger">${keys.revokeNow}</button><a class="button second" href="/keys">${keys.cancel}</a></form>
</section>`
  return kit.render(c, { title, current: '/keys' }, body)
}

/** A sentence about what happens to a key's connections when it is revoked. */
export function effectOnConnections(count: number): string {
  const { revokeNoConnection, revokeConnections, revokeManyConnections } = texts.keys
  if (count === 0) return revokeNoConnection
  return count > SHOWN_CONNECTIONS ? revokeManyConnections({ count }) : revokeConnections({ count })
}
