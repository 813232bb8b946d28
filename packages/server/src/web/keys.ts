import type { Hono } from 'hono'
import { html } from 'hono/html'
import { type ApiKey, administers } from '../api-keys/api-key.ts'
import { KeywayError } from '../errors.ts'
import { newId, parseId } from '../ids.ts'
import { texts } from '../languages/current.ts'
import type { Policies } from '../policies/policy.ts'
import { isTooOldForKey } from '../sessions/reauthentication.ts'
import type { FieldProblem } from './fields.ts'
import {
  fieldOfForm,
  type KeyFormFields,
  nameOf,
  newKeyForm,
  readNetworks,
  readProperties,
} from './key-form.ts'
import { keyIndexPages } from './key-index.ts'
import { overlapOf, renderKey, renderRevoke } from './key-page.ts'
import { readLimits } from './key-settings.ts'
import { type PageContext, type PageKit, type PageVariables, Redirect } from './kit.ts'
import { type Html, pageHead } from './layout.ts'
import { livePages } from './live.ts'
import { renderCreated } from './new-key.ts'
import { limitedLead, notFound } from './problem.ts'

/** /keys: create, list, show, change, rotate and revoke keys, and watch their connections. */
export function keyPages(app: Hono<PageVariables>, kit: PageKit): void {
  keyIndexPages(app, kit, c => firstKeyContent(formFieldsOf(kit, c)))
  app.get('/keys/new', c => renderNew(kit, c, {}))
  app.post('/keys', c => create(kit, c))
  app.get('/keys/:id', async c => renderKey(kit, c, await keyOf(kit, c), {}))
  app.post('/keys/:id/rename', c =>
    changeKey(kit, c, async (userId, id, form) => {
      await kit.apiKeys.update(userId, id, { name: nameOf(form) }, 'person')
      return c.redirect(`/keys/${id}?done=renamed`, 303)
    }),
  )
  app.post('/keys/:id/networks', c =>
    changeKey(kit, c, async (userId, id, typed) => {
      const allowedNetworks = readNetworks(typed)
      if (!Array.isArray(allowedNetworks)) return refuse(kit, c, 'networks', typed, allowedNetworks)
      await kit.apiKeys.update(userId, id, { allowedNetworks }, 'person')
      return c.redirect(`/keys/${id}?done=networks_saved`, 303)
    }),
  )
  app.post('/keys/:id/limits', c =>
    changeKey(kit, c, async (userId, id, typed) => {
      const limits = readLimits(typed, await kit.apiKeys.get(userId, id))
      if ('field' in limits) return refuse(kit, c, 'limits', typed, limits)
      try {
        await kit.apiKeys.update(userId, id, { limits }, 'person')
      } catch (error) {
        return refuse(kit, c, 'limits', typed, null, problemOf(kit, error))
      }
      return c.redirect(`/keys/${id}?done=limits_saved`, 303)
    }),
  )
  app.post('/keys/:id/rotate', c =>
    changeKey(kit, c, async (userId, id, form) => {
      const overlap = overlapOf(form)
      requireRecentSignIn(kit, c, await kit.apiKeys.get(userId, id))
      const successor = await kit.apiKeys.rotate(userId, id, overlap, kit.callerOf(c.req.raw, c.env))
      return renderCreated(kit, c, successor, overlap > 0 ? kit.clock.now() + overlap * 1000 : null)
    }),
  )
  livePages(app, kit)
  app.get('/keys/:id/revoke', async c => renderRevoke(kit, c, await keyOf(kit, c)))
  app.post('/keys/:id/revoke', c =>
    changeKey(kit, c, async (userId, id) => {
      await kit.apiKeys.revoke(userId, id, kit.callerOf(c.req.raw, c.env))
      return c.redirect('/keys?done=revoked', 303)
    }),
  )
}

/** The refusals that are shown on the page with the form, with their messages. */
const FORM_REFUSAL_MESSAGES: { [code: string]: ((kit: PageKit, error: KeywayError) => string) | undefined } =
  {
    key_limit_reached: kit => texts.keys.limit({ count: kit.maxActiveKeys }),
    api_key_inactive: () => texts.keys.inactive,
    api_key_replaced: () => texts.keys.hasSuccessor,
    invalid_request: (_kit, error) => error.message,
    rate_limited: (_kit, error) => limitedLead(error),
  }

/** The message of a refusal that `FORM_REFUSAL_MESSAGES` contains. Rethrows any other error. */
function problemOf(kit: PageKit, error: unknown): string {
  const message = error instanceof KeywayError ? FORM_REFUSAL_MESSAGES[error.code] : undefined
  if (!message) throw error
  return message(kit, error as KeywayError)
}

/** The HTTP status of a refusal that a page shows: 429 with `Retry-After` for `rate_limited`, 409 for all others. */
function httpStatusOf(c: PageContext, error: unknown): number {
  if (!(error instanceof KeywayError) || error.code !== 'rate_limited') return 409
  c.header('Retry-After', String(error.extras.retryAfter))
  return 429
}

async function keyOf(kit: PageKit, c: PageContext): Promise<ApiKey> {
  const { user } = kit.requireSession(c)
  return kit.apiKeys.get(user.id, idOf(c))
}

function idOf(c: PageContext): string {
  const id = parseId(c.req.param('id') ?? '')
  if (!id) throw notFound()
  return id
}

/**
 * Changes the key that the path names, by a form. Refusals of `FORM_REFUSAL_MESSAGES` are shown on the page of the key;
 * all other errors are thrown.
 */
async function changeKey(
  kit: PageKit,
  c: PageContext,
  work: (userId: string, id: string, form: URLSearchParams) => Promise<Response> | Response,
): Promise<Response> {
  const { user } = kit.requireSession(c)
  const form = kit.forms.read(c)
  const id = idOf(c)
  try {
    return await work(user.id, id, form)
  } catch (error) {
    const problem = problemOf(kit, error)
    return renderKey(kit, c, await kit.apiKeys.get(user.id, id), { problem }, httpStatusOf(c, error))
  }
}

/** The page of the key with the refused form, filled with the typed values. */
async function refuse(
  kit: PageKit,
  c: PageContext,
  form: 'networks' | 'limits',
  typed: URLSearchParams,
  problem: FieldProblem | null,
  banner?: string,
): Promise<Response> {
  const key = await keyOf(kit, c)
  return renderKey(kit, c, key, { problem: banner, [form]: { typed, problem } }, 400)
}

/** @throws Redirect to /admin/confirm if a key with these scopes needs a more recent sign-in of an administrator */
function requireRecentSignIn(kit: PageKit, c: PageContext, { scopes }: Pick<ApiKey, 'scopes'>): void {
  const { user, session } = kit.requireSession(c)
  if (isTooOldForKey(administers(scopes), user, session, kit.clock.now()))
    throw new Redirect('/admin/confirm')
}

async function create(kit: PageKit, c: PageContext): Promise<Response> {
  const { user } = kit.requireSession(c)
  const form = kit.forms.read(c)
  const properties = readProperties(form, kit.clock.now())
  if ('field' in properties) return renderNew(kit, c, { typed: form, refused: properties }, 400)
  requireRecentSignIn(kit, c, properties)
  const id = verifyNewKeyId(kit, user.id, form.get('once') ?? '')
  try {
    const newKey = await kit.apiKeys.create(user.id, { ...properties, id }, kit.callerOf(c.req.raw, c.env))
    return await renderCreated(kit, c, newKey, null)
  } catch (error) {
    if (id && error instanceof KeywayError && error.code === 'idempotency_conflict')
      return c.redirect(`/keys/${id}?done=made_before`, 303)
    const fieldProblem = refusedField(kit, error, form)
    if (fieldProblem) return renderNew(kit, c, { typed: form, refused: fieldProblem }, 400)
    return renderNew(kit, c, { typed: form, problem: problemOf(kit, error) }, httpStatusOf(c, error))
  }
}

/** The field of the form that violates a policy, with the policy's rule; null if none does or the form hides it. */
function refusedField(kit: PageKit, error: unknown, form: URLSearchParams): FieldProblem | null {
  const [firstError] = (error instanceof KeywayError && error.extras.errors) || []
  const field = firstError && fieldOfForm(firstError.field, form)
  return field ? { field, message: ruleOf(firstError.field, kit.policies.current()) } : null
}

/** A sentence on what the policies require of a field. */
function ruleOf(apiField: string, { allowedScopes, maxKeyLifetimeDays: days }: Policies): string {
  const { keyForm, keys } = texts
  if (apiField === 'scopes')
    return allowedScopes ? keyForm.onlyScopes({ scopes: allowedScopes.join(', ') }) : keyForm.needsScopes
  if (apiField === 'expires_at') return days === null ? keyForm.mustExpire : keyForm.mostDays({ count: days })
  return keys.networksHint
}

/** An id for the key that a form will create, so that sending it twice creates one key. A MAC binds it to the user. */
function signedNewKeyId(kit: PageKit, userId: string): string {
  const id = newId(kit.clock.now())
  return `${id}~${kit.secrets.mac('new-key-id', `${userId} ${id}`)}`
}

function verifyNewKeyId(kit: PageKit, userId: string, signedId: string): string | undefined {
  const [id = '', mac = ''] = signedId.split('~')
  return kit.secrets.verifyMac('new-key-id', `${userId} ${id}`, mac) ? id : undefined
}

function formFieldsOf(kit: PageKit, c: PageContext): KeyFormFields {
  const { user } = kit.requireSession(c)
  return {
    token: kit.forms.token(c),
    signedKeyId: signedNewKeyId(kit, user.id),
    isAdministrator: user.role === 'admin',
    policies: kit.policies.current(),
  }
}

function renderNew(
  kit: PageKit,
  c: PageContext,
  shown: { typed?: URLSearchParams; problem?: string; refused?: FieldProblem },
  status = 200,
): Response | Promise<Response> {
  const { keys } = texts
  const body = html`<p class="back"><a href="/keys">${keys.back}</a></p>
${pageHead(keys.create, keys.createLead)}
<div class="with-aside"><section class="card">${newKeyForm(formFieldsOf(kit, c), shown.typed, shown.refused)}</section>
${howItWorks([keys.howOnce, keys.how[1], keys.howEnd])}</div>`
  const problem = shown.problem ?? null
  const isRefused = shown.refused !== undefined
  const options = { title: keys.create, current: '/keys', problem, isRefused, formAt: '/keys/new' }
  return kit.render(c, options, body, status)
}

/** The content of /keys for a person without keys: an introduction and the form. */
function firstKeyContent(fields: KeyFormFields): Html {
  const { keys } = texts
  return html`${pageHead(keys.firstTitle, keys.firstLead)}
<div class="with-aside"><section class="card" aria-labelledby="create-title"><h2 id="create-title">${keys.create}</h2>${newKeyForm(fields)}</section>
${howItWorks(keys.how)}</div>`
}

function howItWorks(steps: readonly (readonly [title: string, lead: string])[]): Html {
  return html`<aside><h2>${texts.keys.howTitle}</h2><ol class="steps">${steps.map(([title, lead]) => html`<li><strong>${title}</strong><p>${lead}</p></li>`)}</ol></aside>`
}
