import { html, raw } from 'hono/html'
import type { Instant } from '../../clock.ts'
import { parseId } from '../../ids.ts'
import { type Invitation, type InvitationState, stateOf } from '../../invitations/invitation.ts'
import { isLanguage, LANGUAGES } from '../../languages/languages.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import { parseEmailAddress } from '../../users/email-address.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { day, emptyList, formToken, type Html, pageHead } from '../layout.ts'
import { notFound } from '../problem.ts'
import { act, invalidForm, mayChange, renderAdmin, requireReader } from './acting.ts'
import { listFoot } from './list-foot.ts'
import { adminTexts } from './texts.ts'

const ROWS_PER_PAGE = 40
const ROLES = ['support', 'admin'] as const
const TAG_CLASSES: Record<InvitationState, string> = {
  pending: 'warn',
  accepted: 'active',
  expired: 'expired',
  revoked: 'revoked',
}

export async function renderInvitations(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { invitations } = adminTexts
  const after = decodeCursor(c.req.query('cursor') ?? '')
  const { rows, next } = await kit.store.invitations.list({ limit: ROWS_PER_PAGE, after })
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  const now = kit.clock.now()
  const foot = listFoot(c, {
    path: '/admin/invitations',
    rowCount: rows.length,
    next: next && { cursor: encodeCursor(next) },
  })
  const body = html`${pageHead(invitations.title, invitations.lead)}
${token ? inviteForm(token) : ''}
<section class="card flush">${rows.length === 0 ? emptyList(invitations.empty, invitations.emptyLead) : html`<ul class="list">${rows.map(each => invitationRow(each, now, token))}</ul>`}${foot}</section>`
  return renderAdmin(kit, c, 'invitations', { title: invitations.title }, body)
}

function inviteForm(token: string): Html {
  const { invitations } = adminTexts
  const roles = ROLES.map(role => html`<option value="${role}">${adminTexts.roles[role]}</option>`)
  const languages = Object.entries(LANGUAGES).map(
    ([language, { name, tag }]) => html`<option value="${language}" lang="${tag}">${name}</option>`,
  )
  return html`<section class="card"><form method="post" action="/admin/invitations" class="inline invite">${formToken(token)}<div class="field"><label for="email">${invitations.email}</label><input id="email" name="email" type="email" required maxlength="254" autocomplete="off"></div><div class="field"><label for="role">${invitations.role}</label><select id="role" name="role" aria-describedby="role-hint"><option value="">${invitations.noRole}</option>${roles}</select></div><div class="field"><label for="language">${invitations.language}</label><select id="language" name="language"><option value="">${invitations.ownLanguage}</option>${languages}</select></div><button>${invitations.invite}</button><p class="hint" id="role-hint">${invitations.roleHint}</p></form></section>`
}

function invitationRow(invitation: Invitation, now: Instant, token: string | null): Html {
  const { invitations } = adminTexts
  const { id, email, role, userId } = invitation
  const state = stateOf(invitation, now)
  const accountLink = userId
    ? html` · <a href="/admin/users/${userId}">${invitations.account}<span class="unseen"> ${email}</span></a>`
    : ''
  return html`<li class="item"><div class="what"><span class="name">${email}</span><p>${role ? adminTexts.roles[role] : invitations.noRights}${accountLink}</p></div><p class="when"><span class="tag ${TAG_CLASSES[state]}">${invitations.states[state]}</span> ${state === 'pending' ? html`${invitations.until} ${day(invitation.expiresAt)}` : day(invitation.createdAt)}</p>${token && state === 'pending' ? html`<form class="buttons" method="post" action="/admin/invitations/${id}/revoke">${formToken(token)}<button class="second small harm">${invitations.revoke}<span class="unseen"> ${email}</span></button></form>` : raw('')}</li>`
}

export function invite(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/invitations', 'invited', async (form, by) => {
    const email = parseEmailAddress(form.get('email') ?? '')
    if (!email) throw invalidForm(adminTexts.mails.badAddress)
    const role = ROLES.find(each => each === form.get('role')) ?? null
    const language = form.get('language') ?? ''
    const locale = isLanguage(language) ? LANGUAGES[language].tag : null
    return kit.invitations.invite({ email, role, locale }, by())
  })
}

export function revokeInvitation(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/invitations', 'invitation_revoked', async (_form, by) => {
    const id = parseId(c.req.param('id') ?? '')
    if (!id) throw notFound()
    return kit.invitations.revoke(id, by())
  })
}
