import { html } from 'hono/html'
import { type ApiKey, statusOf } from '../../api-keys/api-key.ts'
import { parseId } from '../../ids.ts'
import { texts } from '../../languages/current.ts'
import { parseRequestLimit, sortedRequestLimits } from '../../limits/limit.ts'
import { copyableValue } from '../copyable.ts'
import { originOf } from '../events.ts'
import { labelOf, statusTag } from '../key-list.ts'
import { keyFacts } from '../key-page.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { formToken, type Html, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import { usageChart } from '../usage-chart.ts'
import { act, backTo, invalidForm, mayChange, reasonField, renderAdmin, requireReader } from './acting.ts'
import { dangerCard } from './danger.ts'
import { lastAct } from './last-act.ts'
import { statusTag as personStatus } from './people.ts'
import { adminTexts } from './texts.ts'

const MAX_TYPED_LENGTH = 200

/** /admin/keys/:id: one key of anybody. */
export async function renderAnyKey(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { keys } = adminTexts
  const key = await keyOf(kit, c)
  const now = kit.clock.now()
  const isActive = statusOf(key, now) === 'active'
  const [usage, owner, revocation] = await Promise.all([
    kit.usage.ofKey(key.userId, key.id),
    kit.users.get(key.userId),
    key.revokedAt === null ? '' : revocationOf(kit, key),
  ])
  const refusedStatus = owner?.status === 'suspended' ? adminTexts.statuses.suspended : null
  const body = html`${backTo('keys')}
<div class="head"><div><h1>${key.name ?? texts.keys.unnamed}</h1><p class="lead">${statusTag(key, statusOf(key, now), refusedStatus)} <code>${key.keyPrefix}…</code> · ${copyableValue('key-id', key.id)}</p></div></div>
${revocation ? html`<p class="banner warning">${revocation}</p>` : ''}
<section class="card"><p class="spaced">${keys.columns.owner} <a href="/admin/users/${key.userId}">${owner?.email ?? adminTexts.people.deleted}</a>${owner && owner.status !== 'active' ? html` ${personStatus(owner.status)}` : ''}</p>${keyFacts(key, now, 'admin')}</section>
<section class="card"><h2>${texts.usage.title}</h2>${usageChart(usage, { isOver: !isActive || owner?.status !== 'active', lastUsedAt: key.lastUsedAt, now })}</section>
${isActive && mayChange(kit, signedIn) ? changeForms(key, kit.forms.token(c)) : ''}`
  return renderAdmin(kit, c, 'keys', { title: labelOf(key) }, body)
}

/**
 * Who revoked the key. The audit has it for an administrator or the `keyway` command, the security events for the owner
 * or a program that had the key. Empty if neither has it.
 */
async function revocationOf(kit: PageKit, { id, userId }: ApiKey): Promise<Html | string> {
  const { keys } = adminTexts
  const revocation = await lastAct(kit, id, 'api_key.revoked')
  if (revocation) return html`${keys.revokedBy} ${revocation}`
  const filter = { types: ['api_key_revoked' as const], keyId: id }
  const [event] = (await kit.securityEvents.list(userId, { limit: 1, after: null }, filter)).rows
  return event?.network ? html`${keys.revokedByOwner} ${time(event.at)} · ${originOf(event)}` : ''
}

function changeForms(key: ApiKey, token: string): Html {
  const { keys } = adminTexts
  const limitsText = key.operatorLimits.requests.map(({ limit, per }) => `${limit}/${per}`).join(' ')
  const revokeAct = {
    action: `/admin/keys/${key.id}/revoke`,
    title: keys.revokeOne,
    lead: keys.revokeOneLead,
    fields: reasonField('revoke-reason'),
    isFinal: true,
  }
  return html`<section class="card"><h2>${keys.limitsTitle}</h2><p class="quiet" id="limits-hint">${keys.limitsHint}</p>
<form method="post" action="/admin/keys/${key.id}/limit" class="inline">${formToken(token)}<div class="field"><label for="requests">${keys.limits}</label><input id="requests" name="requests" value="${limitsText}" maxlength="${MAX_TYPED_LENGTH}" autocomplete="off" spellcheck="false" aria-describedby="limits-hint" placeholder="10/minute 500/day"></div>${reasonField('limit-reason')}<button class="second">${keys.setLimits}</button></form></section>
${dangerCard([revokeAct], token)}`
}

async function keyOf(kit: PageKit, c: PageContext): Promise<ApiKey> {
  const id = parseId(c.req.param('id') ?? '')
  const ownedKey = id && (await kit.apiKeys.findMany([id])).get(id)
  if (!ownedKey) throw notFound()
  return kit.apiKeys.get(ownedKey.userId, ownedKey.id)
}

export function changeAnyKey(kit: PageKit, c: PageContext): Promise<Response> {
  const returnPath = `/admin/keys/${parseId(c.req.param('id') ?? '') ?? ''}`
  const notice = c.req.param('act') === 'limit' ? 'key_limits_set' : 'key_revoked'
  return act(kit, c, returnPath, notice, async (form, by) => {
    const key = await keyOf(kit, c)
    const actedBy = by(form.get('reason') ?? undefined)
    switch (c.req.param('act')) {
      case 'revoke':
        return kit.apiKeys.revokeById(key.id, actedBy)
      case 'limit': {
        const { quota, spend } = key.operatorLimits
        const requests = readLimits(form.get('requests') ?? '')
        const sameQuota = quota && { remaining: null, refill: quota.refill }
        return kit.apiKeys.setOperatorLimits(key.id, { requests, spend, quota: sameQuota }, actedBy)
      }
      default:
        throw notFound()
    }
  })
}

function readLimits(text: string) {
  const parsedLimits = text
    .slice(0, MAX_TYPED_LENGTH)
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(parseRequestLimit)
  const validLimits = parsedLimits.filter(limit => limit !== null)
  const sortedLimits = validLimits.length < parsedLimits.length ? null : sortedRequestLimits(validLimits)
  if (!sortedLimits) throw invalidForm(adminTexts.keys.badLimits)
  return sortedLimits
}
