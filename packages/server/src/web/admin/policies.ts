import { scopeProblem } from '@keyway/sdk/protocol'
import { html, raw } from 'hono/html'
import { formatMoney, parseAmountOrZero } from '../../billing/money.ts'
import { KeywayError } from '../../errors.ts'
import { parseRequestLimit, type RequestLimit, sortedRequestLimits } from '../../limits/limit.ts'
import {
  MAX_LIFETIME_DAYS,
  MAX_SIGN_UP_DOMAINS,
  type Policies,
  type PolicyChange,
  parseDomain,
  SIGN_UP_MODES,
} from '../../policies/policy.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { formToken, type Html, pageHead } from '../layout.ts'
import { act, invalidForm, mayChange, reasonField, renderAdmin, requireReader } from './acting.ts'
import { adminTexts } from './texts.ts'

const MAX_TEXT_LENGTH = 4000

/** The form's values, as text. */
type Fields = Record<FieldName, string>
type FieldName =
  | 'max_lifetime'
  | 'default_lifetime'
  | 'scopes'
  | 'sign_up'
  | 'domains'
  | 'credit'
  | 'maxima'
  | 'defaults'
  | 'person'
  | 'expiry_required'
  | 'unrestricted'

export async function renderPolicies(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  return render(kit, c, fieldsOf(await kit.policies.read()))
}

/** POST /admin/policies. A mistake is shown in the form, with the submitted values. */
export async function changePolicies(kit: PageKit, c: PageContext): Promise<Response> {
  let fields: Fields | undefined
  try {
    return await act(kit, c, '/admin/policies', 'policies_saved', async (form, by) => {
      fields = readFields(form)
      const before = await kit.policies.read()
      const change = onlyChanged(before, parse(fields))
      await kit.policies.change(change, by(form.get('reason') ?? undefined))
    })
  } catch (error) {
    if (!fields || !(error instanceof KeywayError) || error.code !== 'invalid_request') throw error
    return render(kit, c, fields, error.message)
  }
}

function render(kit: PageKit, c: PageContext, fields: Fields, problem: string | null = null) {
  const { policies } = adminTexts
  const isEditable = mayChange(kit, requireReader(kit, c))
  const disabledAttribute = isEditable ? '' : raw(' disabled')
  const input = (name: FieldName, label: string, hint = '', mode = 'text') =>
    html`<div class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${fields[name]}" inputmode="${mode}" maxlength="${MAX_TEXT_LENGTH}" autocomplete="off" spellcheck="false"${hint ? raw(` aria-describedby="${name}-hint"`) : ''}>${hint ? html`<p class="hint" id="${name}-hint">${hint}</p>` : ''}</div>`
  const checkbox = (name: FieldName, label: string) =>
    html`<div class="choice"><input type="checkbox" id="${name}" name="${name}" value="yes"${fields[name] ? raw(' checked') : ''}><div><label for="${name}">${label}</label></div></div>`
  const signUpChoices = SIGN_UP_MODES.map(
    each =>
      html`<div class="choice"><input type="radio" id="sign-up-${each}" name="sign_up" value="${each}"${fields.sign_up === each ? raw(' checked') : ''}><div><label for="sign-up-${each}">${policies.signUps[each]}</label></div></div>`,
  )
  const fieldsets = html`<fieldset class="card"${disabledAttribute}><legend>${policies.keys}</legend>
${input('max_lifetime', policies.maxLifetime, policies.maxLifetimeHint, 'numeric')}
${checkbox('expiry_required', policies.expiryRequired)}
${input('default_lifetime', policies.defaultLifetime, '', 'numeric')}
${checkbox('unrestricted', policies.unrestricted)}
${input('scopes', policies.scopes, policies.scopesHint)}
<p><a href="/admin/keys?filter=violating">${policies.older}</a></p>
</fieldset>
<fieldset class="card"${disabledAttribute}><legend>${policies.signUp}</legend>
${signUpChoices}
${input('domains', policies.domains, policies.domainsHint)}
${input('credit', policies.credit, '', 'decimal')}
</fieldset>
<fieldset class="card"${disabledAttribute}><legend>${policies.limits}</legend>
<p class="hint">${policies.limitsHint}</p>
${input('maxima', policies.maxima)}
${input('defaults', policies.defaults)}
${input('person', policies.person)}
</fieldset>`
  const body = html`${pageHead(policies.title, policies.lead)}
${
  isEditable
    ? html`<form method="post" action="/admin/policies">${formToken(kit.forms.token(c))}
${fieldsets}
${saveCard()}
</form>`
    : fieldsets
}`
  return renderAdmin(
    kit,
    c,
    'policies',
    { title: policies.title, problem },
    body,
    problem === null ? 200 : 400,
  )
}

function saveCard(): Html {
  return html`<div class="card inline">${reasonField('reason')}<button>${adminTexts.policies.save}</button></div>`
}

function fieldsOf(policies: Policies): Fields {
  const limits = (list: readonly RequestLimit[]) => list.map(({ limit, per }) => `${limit}/${per}`).join(', ')
  return {
    max_lifetime: String(policies.maxKeyLifetimeDays ?? ''),
    default_lifetime: String(policies.defaultKeyLifetimeDays),
    scopes: policies.allowedScopes?.join(' ') ?? '',
    sign_up: policies.signUp,
    domains: policies.signUpDomains.join(' '),
    credit: formatMoney(policies.trialCredit),
    maxima: limits(policies.keyLimits),
    defaults: limits(policies.keyDefaults),
    person: limits(policies.personLimits),
    expiry_required: policies.keyExpiryRequired ? 'yes' : '',
    unrestricted: policies.unrestrictedKeysAllowed ? 'yes' : '',
  }
}

function readFields(form: URLSearchParams): Fields {
  const text = (name: FieldName) => (form.get(name) ?? '').slice(0, MAX_TEXT_LENGTH).trim()
  return {
    max_lifetime: text('max_lifetime'),
    default_lifetime: text('default_lifetime'),
    scopes: text('scopes'),
    sign_up: text('sign_up'),
    domains: text('domains'),
    credit: text('credit'),
    maxima: text('maxima'),
    defaults: text('defaults'),
    person: text('person'),
    expiry_required: text('expiry_required'),
    unrestricted: text('unrestricted'),
  }
}

/** @throws KeywayError `invalid_request` with the label of the wrong field */
function parse(fields: Fields): Policies {
  const { policies } = adminTexts
  const scopes = splitList(fields.scopes)
  const domains = splitList(fields.domains)
  const hasBadScope = scopes.length > MAX_ALLOWED_SCOPES || scopes.some(each => scopeProblem(each) !== null)
  return {
    maxKeyLifetimeDays:
      fields.max_lifetime === '' ? null : parseDays(fields.max_lifetime, policies.maxLifetime),
    keyExpiryRequired: fields.expiry_required !== '',
    defaultKeyLifetimeDays: parseDays(fields.default_lifetime, policies.defaultLifetime),
    allowedScopes: hasBadScope ? refuse(policies.scopes) : scopes.length > 0 ? scopes : null,
    unrestrictedKeysAllowed: fields.unrestricted !== '',
    signUp: SIGN_UP_MODES.find(each => each === fields.sign_up) ?? refuse(policies.signUp),
    signUpDomains:
      domains.length > MAX_SIGN_UP_DOMAINS
        ? refuse(policies.domains)
        : domains.map(text => parseDomain(text) ?? refuse(policies.domains)),
    trialCredit: parseAmountOrZero(fields.credit) ?? refuse(policies.credit),
    keyLimits: parseLimits(fields.maxima, policies.maxima),
    keyDefaults: parseLimits(fields.defaults, policies.defaults),
    personLimits: parseLimits(fields.person, policies.person),
  }
}

const MAX_ALLOWED_SCOPES = 100

function splitList(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))]
}

function parseDays(text: string, label: string): number {
  const count = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return count >= 1 && count <= MAX_LIFETIME_DAYS ? count : refuse(label)
}

function parseLimits(text: string, label: string): RequestLimit[] {
  const parsedLimits = splitList(text).map(each => parseRequestLimit(each) ?? refuse(label))
  return sortedRequestLimits(parsedLimits) ?? refuse(label)
}

function refuse(label: string): never {
  throw invalidForm(adminTexts.policies.bad(label))
}

/** Only the policies that the form changes, so that those that follow their defaults are not set to them. */
function onlyChanged(before: Policies, after: Policies): PolicyChange {
  const names = Object.keys(after) as (keyof Policies)[]
  const changedNames = names.filter(name => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  return Object.fromEntries(changedNames.map(name => [name, after[name]]))
}
