import { html, raw } from 'hono/html'
import { type App, type AppSettings, DEFAULT_APP_SETTINGS } from '../../apps/app.ts'
import { SIGNING_ALGS, type SigningAlg } from '../../signing-keys/signing-key.ts'
import type { Html } from '../layout.ts'
import { appsTexts } from './apps-texts.ts'

const { fields, flags } = appsTexts
const MAX_LINES_LENGTH = 12_000

type FormSettings = AppSettings & Partial<Pick<App, 'id'>>

/** The form fields of all settings; rare ones are collapsed. @param app the settings, possibly refused ones */
export function settingsFields(app: FormSettings, reasonField: Html): Html {
  const hasRareSettings =
    app.logoutUris.length + app.scopes.length > 0 ||
    [app.audience, app.verifyUrl, app.backchannelLogoutUri, app.jwksUri].some(value => value !== null)
  return html`${textField('name', fields.name, app.name, { required: true, max: 100 })}
${linesField('redirect_uris', fields.redirectUris, app.redirectUris, fields.redirectUrisHint)}
<fieldset><legend class="unseen">${appsTexts.kind}</legend>${checkbox('public', flags.public, app.isPublic)}${checkbox('trusted', flags.trusted, app.trusted)}${checkbox('require_pkce', flags.requirePkce, app.requirePkce)}</fieldset>
<details${hasRareSettings ? raw(' open') : ''}><summary>${appsTexts.more}</summary>
${textField('audience', fields.audience, app.audience ?? '', { hint: fields.audienceHint })}
${textField('scopes', fields.scopes, app.scopes.join(' '), { hint: fields.scopesHint })}
${linesField('logout_uris', fields.logoutUris, app.logoutUris, fields.oneALine)}
${textField('backchannel_logout_uri', fields.backchannelLogoutUri, app.backchannelLogoutUri ?? '')}
${textField('verify_url', fields.verifyUrl, app.verifyUrl ?? '')}
${textField('jwks_uri', fields.jwksUri, app.jwksUri ?? '')}
<div class="columns">${algorithmField('token_alg', fields.tokenAlg, app.tokenAlg)}${algorithmField('id_token_alg', fields.idTokenAlg, app.idTokenAlg)}</div>
</details>
${reasonField}`
}

export function textField(
  name: string,
  label: string,
  value: string,
  { required = false, max = 2048, hint = '' } = {},
): Html {
  const descriptionAttribute = hint ? raw(` aria-describedby="${name}-hint"`) : ''
  return html`<div class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${value}" maxlength="${max}"${required ? raw(' required') : ''}${descriptionAttribute} autocomplete="off" spellcheck="false">${hint ? html`<p class="hint" id="${name}-hint">${hint}</p>` : ''}</div>`
}

function linesField(name: string, label: string, values: readonly string[], hint: string): Html {
  return html`<div class="field"><label for="${name}">${label}</label><textarea id="${name}" name="${name}" rows="${Math.max(2, values.length + 1)}" maxlength="${MAX_LINES_LENGTH}" aria-describedby="${name}-hint" autocomplete="off" spellcheck="false">${values.join('\n')}</textarea><p class="hint" id="${name}-hint">${hint}</p></div>`
}

export function checkbox(name: string, [label, lead]: [string, string], checked: boolean): Html {
  return html`<div class="choice"><input type="checkbox" id="${name}" name="${name}" value="true"${checked ? raw(' checked') : ''} aria-describedby="${name}-lead"><div><label for="${name}">${label}</label><p class="hint" id="${name}-lead">${lead}</p></div></div>`
}

function algorithmField(name: string, label: string, chosen: SigningAlg): Html {
  const options = SIGNING_ALGS.map(
    each => html`<option${each === chosen ? raw(' selected') : ''}>${each}</option>`,
  )
  return html`<div class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}">${options}</select></div>`
}

/** Reads the submitted settings without validating them. */
export function readSettings(form: URLSearchParams): AppSettings {
  const text = (name: string) => (form.get(name) ?? '').trim()
  const list = (name: string) => text(name).slice(0, MAX_LINES_LENGTH).split(/\s+/).filter(Boolean)
  const alg = (name: string, otherwise: SigningAlg) =>
    SIGNING_ALGS.find(each => each === form.get(name)) ?? otherwise
  return {
    name: text('name'),
    redirectUris: list('redirect_uris'),
    logoutUris: list('logout_uris'),
    scopes: list('scopes'),
    audience: text('audience') || null,
    verifyUrl: text('verify_url') || null,
    backchannelLogoutUri: text('backchannel_logout_uri') || null,
    jwksUri: text('jwks_uri') || null,
    isPublic: form.has('public'),
    trusted: form.has('trusted'),
    requirePkce: form.has('require_pkce'),
    tokenAlg: alg('token_alg', DEFAULT_APP_SETTINGS.tokenAlg),
    idTokenAlg: alg('id_token_alg', DEFAULT_APP_SETTINGS.idTokenAlg),
  }
}
