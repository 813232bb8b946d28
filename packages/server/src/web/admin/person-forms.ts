import { html, raw } from 'hono/html'
import { MAX_USER_NAME_LENGTH, USER_ROLES, type User } from '../../users/user.ts'
import { formToken, type Html } from '../layout.ts'
import { reasonField } from './acting.ts'
import type { DangerousAct } from './danger.ts'
import { adminTexts } from './texts.ts'

export const MAX_DESCRIPTION_LENGTH = 200

/** A card with the acts that help a person and cannot harm. @param once an id that makes repeated credits idempotent */
export function supportCard(user: User, token: string, once: string): Html {
  const { person } = adminTexts
  const form = (name: string, title: string, fields: Html) =>
    html`<form method="post" action="${pathOf(user, name)}" class="act"><h3>${title}</h3>${formToken(token)}${fields}<button class="second">${title}</button></form>`
  const creditFields = html`<input type="hidden" name="once" value="${once}">${field('amount', 'amount', person.amount, 'inputmode="decimal" required maxlength="16" placeholder="5.00"')}${field('description', 'description', person.description, `required maxlength="${MAX_DESCRIPTION_LENGTH}"`)}`
  const nameField = html`<div class="field"><label for="name">${person.name}</label><input id="name" name="name" autocomplete="off" value="${user.name ?? ''}" maxlength="${MAX_USER_NAME_LENGTH}"></div>`
  return html`<section class="card"><h2>${person.support}</h2><div class="acts">
${form('credit', person.credit, creditFields)}
${form('rename', person.rename, nameField)}
</div></section>`
}

/** The acts that remove something from the person, or give rights. @param hasKeys whether any key is active */
export function dangersOf(user: User, isSelf: boolean, hasKeys: boolean): DangerousAct[] {
  const { person, roles } = adminTexts
  const act = (name: string, title: string, lead: string, fields: Html, isFinal = false) => ({
    action: pathOf(user, name),
    ...{ title, lead, fields, isFinal },
  })
  const options = USER_ROLES.map(
    role =>
      html`<option value="${role}"${role === user.role ? raw(' selected') : ''}>${roles[role]}</option>`,
  )
  const role = html`<div class="field"><label for="role">${person.role}</label><select id="role" name="role">${options}</select></div>`
  const confirm = field(
    'confirm',
    'confirm',
    person.typeAddress(user.email ?? ''),
    'required spellcheck="false"',
  )
  const revocation = {
    action: pathOf(user, 'revoke-keys'),
    ...{ title: person.revokeKeys, lead: person.revokeKeysLead, fields: '' as const },
    ...{ isFinal: true, asks: true },
  }
  const revocations = hasKeys ? [revocation] : []
  if (isSelf) return revocations
  return [
    act('role', person.setRole, person.gains, html`${role}${reasonField('role-reason', true)}`),
    ...revocations,
    ...(user.status === 'suspended'
      ? []
      : [act('suspend', person.suspend, person.suspendLead, reasonField('suspend-reason', true))]),
    act(
      'delete',
      person.delete,
      person.deleteLead,
      html`${confirm}${reasonField('delete-reason', true)}`,
      true,
    ),
  ]
}

/** A card on the own page of an administrator, instead of the acts that would lock them out. */
export function selfCard(): Html {
  const { person } = adminTexts
  return html`<section class="card"><h2>${person.self}</h2><p class="quiet">${person.selfLead}</p><p class="buttons below"><a class="button second small" href="/sessions">${person.ownSessions}</a> <a class="button second small" href="/account">${person.ownAccount}</a></p></section>`
}

/**
 * A card that says why the account is suspended, with the form that activates it.
 *
 * @param by who suspended it, when and why; null if the audit does not have it
 */
export function suspensionCard(user: User, by: Html | null, token: string | null): Html {
  const { person } = adminTexts
  const lift = token
    ? html`<form method="post" action="${pathOf(user, 'activate')}" class="inline">${formToken(token)}${reasonField('activate-reason')}<button class="second">${person.activate}</button></form>`
    : ''
  return html`<section class="card"><h2>${person.isSuspended}</h2><p class="quiet">${person.isSuspendedLead}</p>${by ? html`<p class="quiet">${person.suspendedBy} ${by}</p>` : ''}${lift}</section>`
}

function field(id: string, name: string, label: string, more: string): Html {
  return html`<div class="field"><label for="${id}">${label}</label><input id="${id}" name="${name}" autocomplete="off" ${raw(more)}></div>`
}

function pathOf({ id }: User, act: string): string {
  return `/admin/users/${id}/${act}`
}
