import {
  type KnownScope,
  MAX_SCOPE_LENGTH,
  MAX_SCOPES,
  RESERVED_SCOPE_PREFIXES,
  SCOPES,
  scopeProblem,
} from '@keyway/sdk/protocol'
import { html, raw } from 'hono/html'
import { isAdministrative, MAX_ALLOWED_NETWORKS, type NewApiKey, toScopes } from '../api-keys/api-key.ts'
import { MAX_KEY_NAME_LENGTH } from '../api-keys/key-name.ts'
import { DEFAULT_KEY_APP_ID } from '../apps/app.ts'
import { DAY, type Instant, parseRfc3339 } from '../clock.ts'
import { texts } from '../languages/current.ts'
import { parseCidr } from '../network.ts'
import { defaultLifetimeDays, type Policies } from '../policies/policy.ts'
import { type FieldProblem, fieldProblem, fieldState } from './fields.ts'
import { formToken, type Html } from './layout.ts'

const EXPIRY_PRESET_DAYS = [7, 30, 90]
const DAYS_PATTERN = /^[1-9]\d{0,4}$/

/** Presets of scopes for the most common uses of a key. */
const PRESETS: Record<'agent' | 'read', readonly KnownScope[]> = {
  agent: ['agent:connect', 'agents:send'],
  read: ['account:read', 'keys:read', 'agents:read', 'events:read'],
}

/** The state of the form that creates a key, besides the typed values. */
export interface KeyFormFields {
  token: string
  /** The signed id that the key will get, so that submitting the form twice creates one key. */
  signedKeyId: string
  /** Whether administrative scopes are offered. */
  isAdministrator: boolean
  /** Scopes and lifetimes that these forbid are not offered; if they are typed, the form is refused. */
  policies: Policies
}

/** The form that creates a key; rarely used fields are collapsed. After a refusal it has the typed values. */
export function newKeyForm(
  { token, signedKeyId, isAdministrator, policies }: KeyFormFields,
  typed = new URLSearchParams(),
  problem: FieldProblem | null = null,
): Html {
  const { keys, keyForm } = texts
  const scopes = typed.getAll('scope')
  const { allowedScopes, unrestrictedKeysAllowed } = policies
  const offeredScopes = (Object.keys(SCOPES) as KnownScope[]).filter(
    scope =>
      (isAdministrator || !isAdministrative(scope)) &&
      (allowedScopes === null || allowedScopes.includes(scope)),
  )
  const presets = (['agent', 'read'] as const).filter(name =>
    PRESETS[name].every(scope => allowedScopes === null || allowedScopes.includes(scope)),
  )
  const chosenAccess = typed.get('access') ?? presets[0] ?? 'some'
  const hasRareOptions = typed.get('own_scopes') || typed.get('networks')
  return html`<form method="post" action="/keys" class="create">
${formToken(token)}
<input type="hidden" name="once" value="${signedKeyId}">
<div class="field"><label for="name">${keys.name}</label><input id="name" name="name" value="${typed.get('name') ?? ''}" maxlength="${MAX_KEY_NAME_LENGTH}" placeholder="${keys.nameExample}" autocomplete="off"></div>
<fieldset><legend>${keys.scopes}</legend>
${presets.map(name => radioChoice('access', name, keyForm.presets[name][0], keyForm.presets[name][1], chosenAccess === name))}
${unrestrictedKeysAllowed ? radioChoice('access', 'all', keys.accessAll, keys.accessAllLead, chosenAccess === 'all') : ''}
${radioChoice('access', 'some', keys.accessSome, keys.accessSomeLead, chosenAccess === 'some')}
${fieldProblem('scope', problem)}
<div class="scopes" role="group" aria-label="${keys.scopeNames}">${offeredScopes.map((scope, index) => scopeChoice(scope, scopes.includes(scope), index === 0 ? problem : null))}</div>
</fieldset>
<fieldset><legend>${keys.expiry}</legend><div class="segments">
${expiryChoices(policies, typed.get('expiry'), problem)}
</div>${fieldProblem('expiry', problem)}<div class="field date"><label for="expiry_date">${keys.expiryDateLabel}</label><input id="expiry_date" name="expiry_date" type="date" value="${typed.get('expiry_date') ?? ''}"${fieldState('expiry_date', problem)}>${fieldProblem('expiry_date', problem)}</div></fieldset>
<details${hasRareOptions ? raw(' open') : ''}><summary>${keys.moreOptions}</summary>
<div class="field"><label for="own_scopes">${keys.ownScopes}</label><input id="own_scopes" name="own_scopes" value="${typed.get('own_scopes') ?? ''}" autocomplete="off" spellcheck="false"${fieldState('own_scopes', problem, 'own-scopes-hint')}>${fieldProblem('own_scopes', problem)}<p class="hint" id="own-scopes-hint">${keys.ownScopesHint}</p></div>
<div class="field"><label for="networks">${keys.networks}</label><input id="networks" name="networks" value="${typed.get('networks') ?? ''}" autocomplete="off" spellcheck="false"${fieldState('networks', problem, 'networks-hint')}>${fieldProblem('networks', problem)}<p class="hint" id="networks-hint">${keys.networksHint}</p></div>
</details>
<button>${keys.submit}</button>
</form>`
}

function radioChoice(name: string, value: string, label: string, lead: string, checked: boolean): Html {
  const id = `${name}-${value}`
  return html`<div class="choice"><input type="radio" id="${id}" name="${name}" value="${value}"${checked ? raw(' checked') : ''} aria-describedby="${id}-lead"><div><label for="${id}">${label}</label><p class="hint" id="${id}-lead">${lead}</p></div></div>`
}

function scopeChoice(scope: KnownScope, checked: boolean, problem: FieldProblem | null): Html {
  const id = `scope-${scope.replace(':', '-')}`
  return html`<div class="choice"><input type="checkbox" id="${id}" name="scope" value="${scope}"${checked ? raw(' checked') : ''}${fieldState('scope', problem, `${id}-lead`)}><div><label for="${id}">${texts.keyForm.scopeWords[scope]} <code>${scope}</code></label><p class="hint" id="${id}-lead">${texts.keyForm.scopeMeanings[scope]}</p></div></div>`
}

function expiryChoices(policies: Policies, typed: string | null, problem: FieldProblem | null): Html[] {
  const { keys } = texts
  const { keyExpiryRequired, maxKeyLifetimeDays: maxDays } = policies
  const preselectedDays = defaultLifetimeDays(policies)
  const presets = [...new Set([...EXPIRY_PRESET_DAYS, preselectedDays])]
    .filter(days => maxDays === null || days <= maxDays)
    .sort((left, right) => left - right)
  const options: [string, string][] = [
    ...(keyExpiryRequired || maxDays !== null ? [] : [['never', keys.expiryNever] as [string, string]]),
    ...presets.map(days => [String(days), keys.expiryDays({ count: days })] as [string, string]),
    ['date', keys.expiryDate],
  ]
  const chosenValue = typed ?? String(preselectedDays)
  return options.map(
    ([value, label]) =>
      html`<input type="radio" id="expiry-${value}" name="expiry" value="${value}"${chosenValue === value ? raw(problem?.field === 'expiry' ? ' checked autofocus' : ' checked') : ''}><label for="expiry-${value}">${label}</label>`,
  )
}

export function readProperties(form: URLSearchParams, now: Instant): NewApiKey | FieldProblem {
  const { keys } = texts
  const scopes = readScopes(form)
  const expiresAt = readExpiry(form, now)
  const allowedNetworks = readNetworks(form)
  const badScope = scopes.find(scope => scopeProblem(scope) !== null)
  if (form.get('access') === 'some' && scopes.length === 0)
    return { field: 'scope', message: keys.chooseScope }
  if (badScope !== undefined) return { field: 'own_scopes', message: scopeRefusal(badScope) }
  if (scopes.length > MAX_SCOPES)
    return { field: 'own_scopes', message: keys.tooManyScopes({ count: MAX_SCOPES }) }
  if (!Array.isArray(allowedNetworks)) return allowedNetworks
  if (expiresAt === undefined) {
    return { field: form.get('expiry') === 'date' ? 'expiry_date' : 'expiry', message: keys.badExpiry }
  }
  return {
    name: nameOf(form),
    scopes: toScopes(scopes),
    expiresAt,
    appId: DEFAULT_KEY_APP_ID,
    allowedNetworks,
  }
}

function scopeRefusal(scope: string): string {
  const { keys } = texts
  const isReserved = RESERVED_SCOPE_PREFIXES.some(prefix => scope.startsWith(prefix))
  return isReserved && scope.length <= MAX_SCOPE_LENGTH
    ? keys.unknownScope({ scope, scopes: Object.keys(SCOPES).join(', ') })
    : keys.badScope({ scope, most: MAX_SCOPE_LENGTH })
}

/** The name of the form's field that corresponds to a field of the API; null if the form does not show it. */
export function fieldOfForm(apiField: string, form: URLSearchParams): string | null {
  if (apiField === 'scopes') return form.get('access') === 'some' ? 'scope' : null
  if (apiField === 'expires_at') return form.get('expiry') === 'date' ? 'expiry_date' : 'expiry'
  return apiField === 'allowed_networks' ? 'networks' : null
}

/** The networks as CIDRs without duplicates, or the problem. */
export function readNetworks(form: URLSearchParams): string[] | FieldProblem {
  const { keys } = texts
  const networks = listOf(form, 'networks').map(text => ({ text, cidr: parseCidr(text) }))
  const invalidNetwork = networks.find(({ cidr }) => cidr === null)
  if (invalidNetwork) return { field: 'networks', message: keys.badNetwork({ text: invalidNetwork.text }) }
  if (networks.length > MAX_ALLOWED_NETWORKS)
    return { field: 'networks', message: keys.tooManyNetworks({ count: MAX_ALLOWED_NETWORKS }) }
  return [...new Set(networks.map(({ cidr }) => cidr!))]
}

/**
 * The chosen scopes. For "everything" the list is empty, whatever was ticked or typed. For a preset, ticked scopes are
 * ignored, and typed ones are added to those of the preset.
 */
function readScopes(form: URLSearchParams): string[] {
  const access = form.get('access')
  if (access === 'all') return []
  const chosenScopes = access === 'agent' || access === 'read' ? PRESETS[access] : form.getAll('scope')
  return [...new Set([...chosenScopes, ...listOf(form, 'own_scopes')])]
}

function listOf(form: URLSearchParams, name: string): string[] {
  return (form.get(name) ?? '').split(/[\s,]+/).filter(Boolean)
}

/** The expiry; null if the key never expires, undefined if the input is invalid or not in the future. */
function readExpiry(form: URLSearchParams, now: Instant): Instant | null | undefined {
  const choice = form.get('expiry') ?? 'never'
  if (choice === 'never') return null
  if (choice !== 'date') {
    return DAYS_PATTERN.test(choice) ? now + Number(choice) * DAY : undefined
  }
  const endOfDay = parseRfc3339(`${form.get('expiry_date')}T23:59:59Z`)
  return endOfDay !== null && endOfDay > now ? endOfDay : undefined
}

/** The typed name, cut to the maximum length, with spaces for pasted control characters; null if it is empty. */
export function nameOf(form: URLSearchParams): string | null {
  const name = (form.get('name') ?? '').replace(/\p{Cc}/gu, ' ').trim()
  return name ? [...name].slice(0, MAX_KEY_NAME_LENGTH).join('') : null
}
