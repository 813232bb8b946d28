import { html, raw } from 'hono/html'
import type { By } from '../../audit/audit.ts'
import { MAX_REASON_LENGTH } from '../../audit/audit-event.ts'
import { parseAmount } from '../../billing/money.ts'
import { parseId } from '../../ids.ts'
import { MAX_USER_NAME_LENGTH, USER_ROLES, type User } from '../../users/user.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { formToken, type Html } from '../layout.ts'
import { notFound } from '../problem.ts'
import { act, invalid } from './acting.ts'
import { personOf } from './people.ts'
import { adminTexts } from './texts.ts'

const MAX_DESCRIPTION_LENGTH = 200
/** Keys that one statement reads to revoke them. */
const KEYS = 100

/** The forms, each for one act. @param once an id, so that credit that is sent twice is added once */
export function personForms(user: User, token: string, once: string): Html {
  const { person } = adminTexts
  const form = (name: string, title: string, lead: string, fields: Html | '', button: Html) =>
    html`<form method="post" action="/admin/users/${user.id}/${name}" class="act"><h3>${title}</h3>${lead ? html`<p class="hint">${lead}</p>` : ''}${formToken(token)}${fields}${button}</form>`
  const field = (id: string, name: string, label: string, more: string) =>
    html`<div class="field"><label for="${id}">${label}</label><input id="${id}" name="${name}" autocomplete="off" ${raw(more)}></div>`
  const why = (id: string, more = '') =>
    field(id, 'reason', adminTexts.reason, `maxlength="${MAX_REASON_LENGTH}" ${more}`)
  const suspension =
    user.status === 'suspended'
      ? form(
          'activate',
          person.activate,
          '',
          why('activate-reason'),
          html`<button class="second">${person.activate}</button>`,
        )
      : form(
          'suspend',
          person.suspend,
          person.suspendLead,
          why('suspend-reason', 'required'),
          html`<button class="second harm">${person.suspend}</button>`,
        )
  const roles = USER_ROLES.map(
    role => html`<option${role === user.role ? raw(' selected') : ''}>${role}</option>`,
  )
  const credit = html`<input type="hidden" name="once" value="${once}">${field('amount', 'amount', person.amount, 'inputmode="decimal" required maxlength="16"')}${field('description', 'description', person.description, `required maxlength="${MAX_DESCRIPTION_LENGTH}"`)}`
  const name = html`<div class="field"><label for="name">${person.name}</label><input id="name" name="name" autocomplete="off" value="${user.name ?? ''}" maxlength="${MAX_USER_NAME_LENGTH}"></div>`
  return html`<section class="card"><h2>${person.change}</h2><div class="acts">
${form('clear-limits', person.clearLimits, person.clearLimitsLead, '', html`<button class="second">${person.clearLimits}</button>`)}
${form('end-sessions', person.endSessions, person.endSessionsLead, '', html`<button class="second">${person.endSessions}</button>`)}
${form('revoke-keys', person.revokeKeys, person.revokeKeysLead, why('keys-reason', 'required'), html`<button class="second harm">${person.revokeKeys}</button>`)}
${suspension}
${form('credit', person.credit, '', credit, html`<button class="second">${person.credit}</button>`)}
${form('role', person.setRole, person.gains, html`<div class="field"><label for="role">${person.role}</label><select id="role" name="role">${roles}</select></div>`, html`<button class="second">${person.setRole}</button>`)}
${form('rename', person.rename, '', name, html`<button class="second">${person.rename}</button>`)}
${form('delete', person.delete, person.deleteLead, field('confirm', 'confirm', person.address, 'required spellcheck="false"'), html`<button class="second harm">${person.delete}</button>`)}
</div></section>`
}

/** POST /admin/users/:id/:act */
export async function changePerson(kit: PageKit, c: PageContext): Promise<Response> {
  const id = parseId(c.req.param('id') ?? '') ?? ''
  const work = ACTS[c.req.param('act') ?? '']
  if (!work) throw notFound()
  return act(kit, c, `/admin/users/${id}`, async (form, by) => {
    const user = await personOf(kit, c)
    await work(kit, user, form, by(form.get('reason') ?? undefined))
  })
}

type Act = (kit: PageKit, user: User, form: URLSearchParams, by: By) => Promise<unknown>

const ACTS: { [name: string]: Act | undefined } = Object.assign(Object.create(null), {
  role: (kit, { id }, form, by) => {
    const role = USER_ROLES.find(each => each === form.get('role'))
    if (!role) throw notFound()
    return kit.users.setRole(id, role, by)
  },
  rename: (kit, { id }, form, by) => {
    const name = (form.get('name') ?? '').trim()
    if (!isClean(name, MAX_USER_NAME_LENGTH)) throw invalid(adminTexts.person.badName)
    return kit.users.renameBy(id, name || null, by)
  },
  suspend: (kit, { id }, _form, by) => {
    assertReason(by)
    return kit.users.suspend(id, by)
  },
  activate: (kit, { id }, _form, by) => kit.users.activate(id, by),
  'end-sessions': (kit, { id }, _form, by) => kit.sessions.endAll(id, by),
  'revoke-keys': async (kit, { id }, _form, by) => {
    assertReason(by)
    for (let rest = true; rest; ) {
      const { rows, next } = await kit.apiKeys.list(id, 'active', { limit: KEYS, after: null })
      for (const key of rows) await kit.apiKeys.revokeById(key.id, by)
      rest = next !== null
    }
  },
  'clear-limits': async (kit, { email }, _form, by) => {
    if (email) await kit.magicLinks.clearLimits(email, by)
  },
  credit: (kit, { id }, form, by) => {
    const amount = parseAmount((form.get('amount') ?? '').trim())
    const description = (form.get('description') ?? '').trim()
    if (amount === null || description === '' || !isClean(description, MAX_DESCRIPTION_LENGTH))
      throw invalid(adminTexts.person.badAmount)
    const once = parseId(form.get('once') ?? '')
    if (!once) throw notFound()
    return kit.credits.grant({ userId: id, amount, description }, `page:${once}`, by)
  },
  delete: (kit, user, form, by) => {
    if (user.email === null || form.get('confirm')?.trim().toLowerCase() !== user.email)
      throw invalid(adminTexts.person.mismatch)
    return kit.users.delete(user.id, by)
  },
} satisfies Record<string, Act>)

function assertReason(by: By): void {
  if (by.reason === null) throw invalid(adminTexts.person.needsReason)
}

function isClean(text: string, maxLength: number): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text) && [...text].length <= maxLength
}
