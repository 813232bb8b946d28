import { html } from 'hono/html'
import { type OwnedApiKey, statusOf } from '../../api-keys/api-key.ts'
import { parseId } from '../../ids.ts'
import { texts } from '../../languages/current.ts'
import { labelOf } from '../key-list.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { act, invalidForm, reasonField, requireRecentAdministrator } from './acting.ts'
import { renderQuestion } from './confirmation.ts'
import { personLinks } from './person-links.ts'
import { adminTexts } from './texts.ts'

/** Maximum number of keys that are revoked together: as many as a page of the list has. */
export const MAX_SELECTED = 40

/** GET /admin/keys/revoke: asks for confirmation, naming keys and owners. */
export async function renderRevokeKeys(kit: PageKit, c: PageContext): Promise<Response> {
  requireRecentAdministrator(kit, c, '/admin/keys')
  const { keyList } = texts
  const selected = await activeKeys(kit, c.req.queries('id') ?? [])
  const owner = await personLinks(
    kit,
    selected.map(({ userId }) => userId),
  )
  const count = selected.length
  return renderQuestion(kit, c, {
    section: 'keys',
    title: keyList.revokeTitle({ count }),
    body: html`<ul>${selected.map(key => html`<li>${labelOf(key)} <code>${key.keyPrefix}…</code> · ${owner(key.userId)}</li>`)}</ul>
<p>${adminTexts.keys.revokeLead}</p>`,
    action: '/admin/keys/revoke',
    fields: html`${selected.map(({ id }) => html`<input type="hidden" name="id" value="${id}">`)}${reasonField('reason')}`,
    submit: keyList.revokeNow({ count }),
    cancel: { href: '/admin/keys', label: adminTexts.cancel },
  })
}

/** POST /admin/keys/revoke */
export function revokeKeys(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/keys', 'keys_revoked', async (form, by) => {
    const selected = await activeKeys(kit, form.getAll('id'))
    const actedBy = by(form.get('reason') ?? undefined)
    for (const { id } of selected) await kit.apiKeys.revokeById(id, actedBy)
    return c.redirect(`/admin/keys?revoked=${selected.length}`, 303)
  })
}

/** The active keys among these. @throws KeywayError `invalid_request` if none is */
async function activeKeys(kit: PageKit, typed: readonly string[]): Promise<OwnedApiKey[]> {
  const ids = new Set(typed.slice(0, MAX_SELECTED).flatMap(text => parseId(text) ?? []))
  const now = kit.clock.now()
  const found = [...(await kit.apiKeys.findMany([...ids])).values()]
  const active = found.filter(key => statusOf(key, now) === 'active')
  if (active.length === 0) throw invalidForm(texts.keyList.noneSelected)
  return active
}
