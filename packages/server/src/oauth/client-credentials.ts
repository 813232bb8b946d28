import { type App, isSelfDescribed } from '../apps/app.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import { createKeyedWindows } from '../keyed-windows.ts'
import type { Wait } from '../rate-windows.ts'
import { signAppToken } from './app-token.ts'
import { namedClient } from './client-authentication.ts'
import { audienceOf, scopesOf } from './form.ts'
import type { Grant, GrantDeps, GrantResult, TokenRequest } from './grant.ts'
import { exchangeKey } from './key-exchange.ts'
import { invalidClient, OAuthError } from './oauth-error.ts'

/** Maximum number of apps with counts in memory; operators register far fewer. */
const MAX_REMEMBERED_APPS = 10_000

/**
 * The grant `client_credentials` (RFC 6749 section 4.4). For an API key as client it issues the agent token of an
 * exchange; for an app, a token for the app itself.
 */
export function createClientCredentialsGrant(deps: GrantDeps): Grant {
  const limits = createKeyedWindows({ ...deps, windows: deps.exchangeLimits, maxNames: MAX_REMEMBERED_APPS })

  return async request => {
    if (request.form.client_assertion !== undefined)
      return issueAppToken(request, await deps.clients.app(request))
    const client = namedClient(request)
    if (!client?.secret)
      throw invalidClient('Send client_id and client_secret: of an API key its id and the key.')
    // A UUID is the id of a key, since no app id is one.
    const keyId = parseId(client.id)
    return keyId
      ? exchangeKey(deps, request, { key: client.secret, keyId, refusal: 'invalid_client' })
      : issueAppToken(request, await deps.clients.app(request))
  }

  /** The token is for the client itself, and its audience is a registered app: it grants nothing on this service. */
  async function issueAppToken({ form }: TokenRequest, client: App): Promise<GrantResult> {
    // A service might mistake the token of a client that registered itself for that of an app that it trusts.
    if (isSelfDescribed(client.id))
      throw new OAuthError(
        'unauthorized_client',
        'Only apps that the operator registered get tokens for themselves.',
      )
    const audience = audienceOf(form)
    const target = audience === undefined ? null : await deps.storage.store.apps.findByAudience(audience)
    if (!target)
      throw new OAuthError('invalid_target', 'Name the audience of a registered app as resource or audience.')
    const scopes = scopesOf(form) ?? []
    const excessScope = scopes.find(scope => !client.scopes.includes(scope))
    if (excessScope !== undefined)
      throw new OAuthError('invalid_scope', `The operator did not give this app the scope ${excessScope}.`)
    const wait = limits.count(client.id)
    if (wait) throw tooManyTokens(wait)
    return { answer: await signAppToken(deps, client, target, scopes) }
  }
}

function tooManyTokens({ retryAfter, window }: Wait): KeywayError {
  const detail = `This app asked for too many tokens within this ${window}. A token works for 15 minutes: keep it.`
  return new KeywayError('rate_limited', detail, { retryAfter, window, setting: 'KEYWAY_EXCHANGE_LIMITS' })
}
