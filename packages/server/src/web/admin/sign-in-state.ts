import { html } from 'hono/html'
import type { SignInLimits } from '../../magic-links/magic-links.ts'
import type { Refusal } from '../../magic-links/send-limits.ts'
import type { Suppression } from '../../outbox/suppression.ts'
import { admitsSignUp } from '../../policies/policy.ts'
import type { EmailAddress } from '../../users/email-address.ts'
import type { PageKit } from '../kit.ts'
import { day, formToken, type Html, time } from '../layout.ts'
import { adminTexts } from './texts.ts'

/** An address, the suppression of mail to it (null if there is none), and the limits that refuse its mails or codes. */
export interface SignInState {
  email: EmailAddress
  suppression: Suppression | null
  limits: SignInLimits
}

export async function signInState(kit: PageKit, email: EmailAddress): Promise<SignInState> {
  const [suppression, limits] = await Promise.all([
    kit.store.suppressions.find(email, kit.clock.now()),
    kit.magicLinks.limitsOf(email),
  ])
  return { email, suppression, limits }
}

export function isLimited({ limits: { mails, returningMails, codesBlockedUntil } }: SignInState): boolean {
  return mails !== null || returningMails !== null || codesBlockedUntil !== null
}

/** The state as two labelled values. */
export function signInFacts(state: SignInState): [label: string, value: Html][] {
  const { signIn } = adminTexts
  const tag = (isGood: boolean, good: string, bad: string) =>
    html`<span class="tag ${isGood ? 'active' : 'warn'}">${isGood ? good : bad}</span>`
  return [
    [signIn.mail, tag(state.suppression === null, signIn.sent, adminTexts.mails.isSuppressed)],
    [signIn.limits, tag(!isLimited(state), signIn.notReached, signIn.reached)],
  ]
}

/**
 * The obstacles to signing in, each with the form that removes it; empty if there are none.
 *
 * @param token the form token; null for no forms
 * @param returnPath the page to return to after an obstacle was removed
 */
export function obstaclesOf(state: SignInState, token: string | null, returnPath: string): Html | '' {
  const { email, suppression, limits } = state
  const { signIn, mails, person } = adminTexts
  const form = (act: string, label: string) =>
    token
      ? html`<form class="buttons" method="post" action="/admin/mails/${act}">${formToken(token)}<input type="hidden" name="back" value="${returnPath}"><input type="hidden" name="address" value="${email}"><button class="second small">${label}</button></form>`
      : ''
  const items = [
    ...(suppression
      ? [
          html`<li class="item"><div class="what"><span class="name">${signIn.suppressed}</span><p>${mails.reasons[suppression.reason]} · ${mails.reportedBy} ${suppression.provider}, ${day(suppression.at)}</p></div><p class="when">${signIn.until} ${day(suppression.until)}</p>${form('lift', mails.lift)}</li>`,
        ]
      : []),
    ...(isLimited(state)
      ? [
          html`<li class="item"><div class="what"><span class="name">${signIn.limited}</span>${limitSentences(limits).map(each => html`<p>${each}</p>`)}</div><p class="when"></p>${form('clear-limits', person.clearLimits)}</li>`,
        ]
      : []),
  ]
  if (items.length === 0) return ''
  return html`<section class="card flush"><div class="card-head"><h2>${signIn.title}</h2></div><ul class="list">${items}</ul></section>`
}

function limitSentences({ mails, returningMails, codesBlockedUntil }: SignInLimits): (Html | string)[] {
  const { signIn } = adminTexts
  const waitAndWindow = ({ retryAfter, window }: Refusal) => [waitInWords(retryAfter), window] as const
  return [
    ...(mails ? [signIn.newBrowser(...waitAndWindow(mails))] : []),
    ...(returningMails ? [signIn.knownBrowser(...waitAndWindow(returningMails))] : []),
    ...(codesBlockedUntil ? [html`${signIn.codes} ${time(codesBlockedUntil)}. ${signIn.linkWorks}`] : []),
  ]
}

const UNITS = [
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const

/** Formats a wait in words, rounded up, so that the wait is over once the stated time has passed. */
function waitInWords(seconds: number): string {
  const [unit, size] = UNITS.find(([, size]) => seconds > size) ?? UNITS[2]
  const count = Math.ceil(seconds / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

export async function noAccountCard(kit: PageKit, email: EmailAddress, token: string | null): Promise<Html> {
  const { signIn } = adminTexts
  const [state, policies, invitation] = await Promise.all([
    signInState(kit, email),
    kit.policies.read(),
    kit.store.invitations.findPending(email, kit.clock.now()),
  ])
  const maySignUp = invitation !== null || admitsSignUp(policies, email)
  const facts = [
    ...signInFacts(state),
    [
      signIn.signUp,
      html`<span class="tag ${maySignUp ? 'active' : 'warn'}">${maySignUp ? signIn.allowed : signIn.notAllowed}</span>`,
    ] as const,
  ]
  return html`<section class="card"><h2>${email}</h2><p class="quiet">${signIn.noAccount} ${maySignUp ? '' : html`${signIn.closed} <a href="/admin/invitations">${adminTexts.nav.invitations}</a>`}</p><dl class="facts below">${facts.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl></section>
${obstaclesOf(state, token, '/admin/users')}`
}
