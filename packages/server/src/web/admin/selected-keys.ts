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
  const selectedKeys = await findActiveKeys(kit, c.req.queries('id') ?? [])
  const ownerLink = await personLinks(
    kit,
    selectedKeys.map(({ userId }) => userId),
  )
  const count = selectedKeys.length
  return renderQuestion(kit, c, {
    section: 'keys',
    title: keyList.revokeTitle({ count }),
    body: html`<ul>${selectedKeys.map(key => html`<li>${labelOf(key)} <code>${key.keyPrefix}…</code> · ${ownerLink(key.userId)}</li>`)}</ul>
<p>${adminTexts.keys.revokeLead}</p>`,
    action: '/admin/keys/revoke',
    fields: html`${selectedKeys.map(({ id }) => html`<input type="hidden" name="id" value="${id}">`)}${reasonField('reason')}`,
    submit: keyList.revokeNow({ count }),
    cancel: { href: '/admin/keys', label: adminTexts.cancel },
  })
}

export function revokeKeys(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/keys', 'keys_revoked', async (form, by) => {
    const selectedKeys = await findActiveKeys(kit, form.getAll('id'))
    const actedBy = by(form.get('reason') ?? undefined)
    for (const { id } of selectedKeys) await kit.apiKeys.revokeById(id, actedBy)
    return c.redirect(`/admin/keys?revoked=${selectedKeys.length}`, 303)
  })
}

/** The active keys with the first MAX_SELECTED of these ids. @throws KeywayError `invalid_request` if there are none */
async function findActiveKeys(kit: PageKit, idTexts: readonly string[]): Promise<OwnedApiKey[]> {
  const ids = new Set(idTexts.slice(0, MAX_SELECTED).flatMap(text => parseId(text) ?? []))
  const now = kit.clock.now()
  const keys = [...(await kit.apiKeys.findMany([...ids])).values()]
  const activeKeys = keys.filter(key => statusOf(key, now) === 'active')
  if (activeKeys.length === 0) throw invalidForm(texts.keyList.noneSelected)
  return activeKeys
}
