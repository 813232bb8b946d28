import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { NewApp } from '../../src/apps/apps.ts'
import { type Client, SAME_ORIGIN } from './page-client.ts'
import type { WebServer } from './web.ts'

export const CALLBACK = 'https://shop.example.com/callback'

/** Registers an app, by default the confidential client `shop`. Returns its secret, empty if it has none. */
export async function registerShop(web: WebServer, overrides: Partial<NewApp> = {}): Promise<string> {
  const { secret } = await web.server.services.apps.register({
    id: 'shop',
    name: 'The Shop',
    redirectUris: [CALLBACK],
    ...overrides,
  })
  return secret ?? ''
}

export function newVerifier(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

export type Parameters = Record<string, string | undefined>

/** Path and query of a valid authorization request of `shop`. In `changes`, undefined leaves a parameter out. */
export function authorizePath(challenge: string, changes: Parameters = {}): string {
  const params = {
    client_id: 'shop',
    redirect_uri: CALLBACK,
    response_type: 'code',
    scope: 'openid email profile',
    state: 'a state',
    nonce: 'a nonce',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...changes,
  }
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, value)
  return `/oauth/authorize?${query}`
}

export function locationOf(answer: Response): URL {
  const location = answer.headers.get('location')
  assert.ok(location, `${answer.status} leads nowhere`)
  return new URL(location, 'https://this.server')
}

/** The query parameters with which a response redirects to the app. */
export function callbackParameters(answer: Response): Record<string, string> {
  return Object.fromEntries(locationOf(answer).searchParams)
}

export interface ConsentForm {
  form_token: string
  request: string
  user: string
}

/** Makes the authorization request at `path`, which must be answered with the consent page. Returns its form fields. */
export async function consentForm(client: Client, path: string): Promise<ConsentForm & { page: string }> {
  const answer = await client.get(path)
  const page = await answer.text()
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(page)?.[1]
  const [form_token, request, user] = [field('form_token'), field('request'), field('user')]
  assert.ok(
    form_token && request && user,
    `no consent page, but ${answer.status} ${answer.headers.get('location')}`,
  )
  return { form_token, request, user, page }
}

export function decideConsent(
  client: Client,
  { form_token, request, user }: ConsentForm,
  decision: string,
  headers: Record<string, string> = SAME_ORIGIN,
): Promise<Response> {
  return client.post('/oauth/consent', { form_token, request, user, decision }, headers)
}

/** Makes the authorization request at `path`, and consents if asked. Returns the code that the app gets. */
export async function codeOf(client: Client, path: string): Promise<string> {
  const answer = await client.get(path)
  const asksConsent = answer.status === 200
  const redirect = asksConsent
    ? await decideConsent(client, await consentForm(client, path), 'allow')
    : answer
  const { code } = callbackParameters(redirect)
  assert.ok(code, `no code: ${redirect.headers.get('location')}`)
  return code
}
