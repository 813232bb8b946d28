import { html, raw } from 'hono/html'
import type { ApiKey } from '../api-keys/api-key.ts'
import { formatMoney, parseAmount } from '../billing/money.ts'
import { localization, texts } from '../languages/current.ts'
import {
  isUnlimited,
  type Limits,
  MAX_QUOTA,
  MAX_REQUEST_LIMIT,
  REFILL_PERIODS,
  REQUEST_WINDOWS,
  SPEND_PERIODS,
  type WantedLimits,
} from '../limits/limit.ts'
import { type FieldProblem, fieldProblem, fieldState } from './fields.ts'
import { formToken, type Html } from './layout.ts'

/** A form that was refused, with the submitted values. `problem` is null if it does not concern a single field. */
export interface RefusedForm {
  typed: URLSearchParams
  problem: FieldProblem | null
}

export function networksCard(key: ApiKey, token: string, refused: RefusedForm | undefined): Html {
  const { keys, keyForm } = texts
  const value = refused?.typed.get('networks') ?? key.allowedNetworks.join(' ')
  return html`<section class="card"><h2><label for="networks">${keys.networks}</label></h2>
<form method="post" action="/keys/${key.id}/networks">${formToken(token)}<div class="field"><input id="networks" name="networks" value="${value}" autocomplete="off" spellcheck="false"${fieldState('networks', refused?.problem, 'networks-hint')}>${fieldProblem('networks', refused?.problem)}<p class="hint" id="networks-hint">${keys.networksHint}</p></div><button class="second">${keyForm.saveNetworks}</button></form></section>`
}

/** The limits that owner and operator set for a key, and the form that changes the owner's. */
export function limitsCard(key: ApiKey, token: string, refused: RefusedForm | undefined): Html {
  const { keyForm } = texts
  const description = describeLimits(key.limits)
  return html`<section class="card"><h2>${keyForm.limits}</h2>
${description ? html`<p>${description}</p>` : html`<p class="quiet">${keyForm.noLimits}</p>`}
${isUnlimited(key.operatorLimits) ? '' : html`<p class="quiet">${keyForm.operatorLimits({ limits: describeLimits(key.operatorLimits) })}</p>`}
<details${refused ? raw(' open') : ''}><summary>${keyForm.change}</summary>${limitsForm(key, token, refused)}</details></section>`
}

function limitsForm(key: ApiKey, token: string, refused: RefusedForm | undefined): Html {
  const { keyForm } = texts
  const { requests, spend, quota } = key.limits
  const problem = refused?.problem
  const shownValue = (name: string, current: string | undefined) => refused?.typed.get(name) ?? current ?? ''
  const field = (name: string, label: string, current: string | undefined, mode: string) =>
    html`<div class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${shownValue(name, current)}" inputmode="${mode}" autocomplete="off"${fieldState(name, problem)}>${fieldProblem(name, problem)}</div>`
  const refillPeriod = refused?.typed.get('quota_every') ?? quota?.refill?.every ?? 'month'
  return html`<form method="post" action="/keys/${key.id}/limits" class="limits">${formToken(token)}<p class="quiet">${keyForm.limitsLead}</p>
<fieldset><legend>${keyForm.requests}</legend><div class="numbers">${REQUEST_WINDOWS.map(per => field(`requests_${per}`, keyForm.requestsPer[per], requests.find(each => each.per === per)?.limit.toString(), 'numeric'))}</div></fieldset>
<fieldset><legend>${keyForm.spend}</legend><div class="numbers">${SPEND_PERIODS.map(per => field(`spend_${per}`, keyForm.spendPer[per], amountOf(spend.find(each => each.per === per)?.amount), 'decimal'))}</div></fieldset>
${
  quota && !quota.refill
    ? html`<p class="quiet">${keyForm.fixedQuota}</p>`
    : html`<div class="numbers">${field('quota', keyForm.quota, quota?.refill?.amount.toString(), 'numeric')}<div class="field"><label for="quota_every">${keyForm.quotaEvery}</label><select id="quota_every" name="quota_every">${REFILL_PERIODS.map(period => html`<option value="${period}"${period === refillPeriod ? raw(' selected') : ''}>${keyForm.periods[period]}</option>`)}</select></div></div>`
}
<button class="second">${keyForm.saveLimits}</button></form>`
}

function amountOf(amount: number | undefined): string | undefined {
  return amount === undefined ? undefined : formatMoney(amount)
}

/** The limits in words; empty without limits. */
function describeLimits({ requests, spend, quota }: Limits): string {
  const { keyForm } = texts
  return [
    ...requests.map(({ limit, per }) =>
      keyForm.requestLimit({ count: limit, per: keyForm.requestsPer[per] }),
    ),
    ...spend.map(({ amount, per }) =>
      keyForm.spendLimit({ amount: localization().dollars(formatMoney(amount)), per: keyForm.spendPer[per] }),
    ),
    ...(quota ? [describeQuota(quota)] : []),
  ].join(', ')
}

function describeQuota({ refill }: NonNullable<Limits['quota']>): string {
  const { keyForm } = texts
  return refill
    ? keyForm.refill({ count: refill.amount, per: keyForm.periods[refill.every] })
    : keyForm.fixedQuotaShort
}

/** Parses the form of limits; returns them, or the first problem. A quota without a refill is left unchanged. */
export function readLimits(
  form: URLSearchParams,
  { limits: { quota } }: ApiKey,
): WantedLimits | FieldProblem {
  const { keyForm } = texts
  const requests: { limit: number; per: (typeof REQUEST_WINDOWS)[number] }[] = []
  for (const per of REQUEST_WINDOWS) {
    const limit = wholeNumber(form.get(`requests_${per}`), MAX_REQUEST_LIMIT)
    if (limit === undefined)
      return { field: `requests_${per}`, message: keyForm.badNumber({ most: MAX_REQUEST_LIMIT }) }
    if (limit !== null) requests.push({ limit, per })
  }
  const spend: { amount: number; per: (typeof SPEND_PERIODS)[number] }[] = []
  for (const per of SPEND_PERIODS) {
    const text = textOf(form.get(`spend_${per}`))
    const amount = text ? parseAmount(text) : undefined
    if (amount === null) return { field: `spend_${per}`, message: keyForm.badAmount }
    if (amount !== undefined) spend.push({ amount, per })
  }
  if (quota && !quota.refill) return { requests, spend, quota: { remaining: null, refill: null } }
  const amount = wholeNumber(form.get('quota'), MAX_QUOTA)
  if (amount === undefined) return { field: 'quota', message: keyForm.badNumber({ most: MAX_QUOTA }) }
  if (amount === null) return { requests, spend, quota: null }
  const refillPeriod = REFILL_PERIODS.find(period => period === form.get('quota_every')) ?? 'month'
  return { requests, spend, quota: { remaining: null, refill: { amount, every: refillPeriod } } }
}

/** A number from 1 to `most`; null for an empty field, undefined for any other text. */
function wholeNumber(value: string | null, most: number): number | null | undefined {
  const text = textOf(value)
  if (!text) return null
  return /^[1-9]\d{0,12}$/.test(text) && Number(text) <= most ? Number(text) : undefined
}

function textOf(value: string | null): string {
  return (value ?? '').trim()
}
