import { html } from 'hono/html'
import type { ActedBy } from '../../audit/audit.ts'
import { parseAmount } from '../../billing/money.ts'
import { parseId } from '../../ids.ts'
import { texts } from '../../languages/current.ts'
import { MAX_USER_NAME_LENGTH, USER_ROLES, type User } from '../../users/user.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { notFound } from '../problem.ts'
import { act, invalidForm, reasonField, requireReason, requireRecentAdministrator } from './acting.ts'
import { renderQuestion } from './confirmation.ts'
import { personOf } from './people.ts'
import { MAX_DESCRIPTION_LENGTH } from './person-forms.ts'
import { adminTexts, type Notice } from './texts.ts'

/** Number of keys that one statement reads in order to revoke them. */
const KEY_BATCH = 100
/** Keys are counted up to this number; nobody has more. */
const MAX_COUNTED = 1_000_000

/** GET /admin/users/:id/revoke-keys: asks for confirmation, with the number of keys. */
export async function renderRevokeAllKeys(kit: PageKit, c: PageContext): Promise<Response> {
  const id = parseId(c.req.param('id') ?? '') ?? ''
  const returnPath = `/admin/users/${id}`
  requireRecentAdministrator(kit, c, returnPath)
  const user = await personOf(kit, c)
  const count = await kit.store.apiKeys.countActive(id, kit.clock.now(), MAX_COUNTED)
  if (count === 0) return c.redirect(returnPath, 303)
  return renderQuestion(kit, c, {
    section: 'people',
    title: texts.keyList.revokeTitle({ count }),
    body: html`<p>${user.email}</p><p>${adminTexts.person.revokeAllLead}</p>`,
    action: `${returnPath}/revoke-keys`,
    fields: reasonField('reason', true),
    submit: texts.keyList.revokeNow({ count }),
    cancel: { href: returnPath, label: adminTexts.cancel },
  })
}

export async function changePerson(kit: PageKit, c: PageContext): Promise<Response> {
  const id = parseId(c.req.param('id') ?? '') ?? ''
  const noticeAndAct = ACTS[c.req.param('act') ?? '']
  if (!noticeAndAct) throw notFound()
  const [notice, work] = noticeAndAct
  return act(kit, c, `/admin/users/${id}`, notice, async (form, by) => {
    const user = await personOf(kit, c)
    const actedBy = by(form.get('reason') ?? undefined)
    if (user.id === actedBy.actor.id && SELF_LOCKING_ACTS.has(c.req.param('act')!))
      throw invalidForm(adminTexts.person.notYourself)
    await work(kit, user, form, actedBy)
  })
}

/** Acts that administrators may not perform on their own account here, since they could lock themselves out. */
const SELF_LOCKING_ACTS: ReadonlySet<string> = new Set(['role', 'suspend', 'end-sessions', 'delete'])

type Act = (kit: PageKit, user: User, form: URLSearchParams, by: ActedBy) => Promise<unknown>

/** The acts by name, each with the notice to show after it. */
const ACTS: { [name: string]: [Notice, Act] | undefined } = Object.assign(Object.create(null), {
  role: ['role_set', setRole],
  rename: ['person_renamed', rename],
  suspend: ['suspended', suspend],
  activate: ['activated', (kit, { id }, _form, by) => kit.users.activate(id, by)],
  'end-sessions': ['sessions_ended', (kit, { id }, _form, by) => kit.sessions.endAll(id, by)],
  'end-session': ['session_ended', endSession],
  'revoke-keys': ['all_keys_revoked', revokeKeys],
  credit: ['credit_added', addCredit],
  delete: ['account_deleted', deleteAccount],
} satisfies Record<string, [Notice, Act]>)

function setRole(...[kit, { id }, form, by]: Parameters<Act>) {
  const role = USER_ROLES.find(each => each === form.get('role'))
  if (!role) throw notFound()
  requireReason(by)
  return kit.users.setRole(id, role, by)
}

function rename(...[kit, { id }, form, by]: Parameters<Act>) {
  const name = (form.get('name') ?? '').trim()
  if (!isClean(name, MAX_USER_NAME_LENGTH)) throw invalidForm(adminTexts.person.badName)
  return kit.users.renameBy(id, name || null, by)
}

function suspend(...[kit, { id }, _form, by]: Parameters<Act>) {
  requireReason(by)
  return kit.users.suspend(id, by)
}

function endSession(...[kit, { id }, form, by]: Parameters<Act>) {
  const sessionId = parseId(form.get('session') ?? '') ?? ''
  if (id === by.actor.id && sessionId === by.actor.session_id)
    throw invalidForm(adminTexts.person.notYourself)
  return kit.sessions.endOne(id, sessionId, by)
}

async function revokeKeys(...[kit, { id }, _form, by]: Parameters<Act>) {
  requireReason(by)
  for (let hasMore = true; hasMore; ) {
    const { rows, next } = await kit.apiKeys.list(id, 'active', { limit: KEY_BATCH, after: null })
    for (const key of rows) await kit.apiKeys.revokeById(key.id, by)
    hasMore = next !== null
  }
}

function addCredit(...[kit, { id }, form, by]: Parameters<Act>) {
  const amount = parseAmount((form.get('amount') ?? '').trim())
  const description = (form.get('description') ?? '').trim()
  if (amount === null || description === '' || !isClean(description, MAX_DESCRIPTION_LENGTH))
    throw invalidForm(adminTexts.person.badAmount)
  const creditId = parseId(form.get('once') ?? '')
  if (!creditId) throw notFound()
  return kit.credits.grant({ userId: id, amount, description }, `page:${creditId}`, by)
}

function deleteAccount(...[kit, user, form, by]: Parameters<Act>) {
  if (user.email === null || form.get('confirm')?.trim().toLowerCase() !== user.email)
    throw invalidForm(adminTexts.person.mismatch)
  requireReason(by)
  return kit.users.delete(user.id, by)
}

function isClean(text: string, maxLength: number): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text) && [...text].length <= maxLength
}
