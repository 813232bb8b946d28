import type { ErrorCode, Problem } from '@keyway/sdk/protocol'
import type { KeywayError } from './errors.ts'

/** One row of the problem table (RFC 9457): everything that an error code determines. */
export interface ProblemKind {
  status: 400 | 401 | 402 | 403 | 404 | 405 | 409 | 410 | 413 | 415 | 426 | 429 | 500 | 503
  title: string
  /** What the client can do about it; shown by `GET /errors/{code}`. */
  help: string
  /** The refusal may be a failed guess of a credential, which counts in the failure limits of the client's network. */
  isGuess?: true
  /** The request log records the refusal at `info`, since it may be part of an attack. */
  isLogged?: true
}

/** The problem of every error code; the type makes a missing code a compile error. */
export const PROBLEMS: Record<ErrorCode, ProblemKind> = {
  invalid_json: {
    status: 400,
    title: 'The body is not valid JSON',
    help: 'Send one JSON object in UTF-8, for example {"email": "ada@example.com"}.',
  },
  invalid_request: {
    status: 400,
    title: 'The request is not valid',
    help: 'Read `errors`: each entry names a field and says what it must be. /openapi.json has every schema.',
  },
  magic_link_invalid: {
    status: 400,
    title: 'The sign-in link or code is not valid',
    help: 'Check that the whole link was opened, or ask for a new one with POST /auth/send-magic-link.',
    isGuess: true,
    isLogged: true,
  },
  authentication_required: {
    status: 401,
    title: 'Authentication is required',
    help: 'Send `Authorization: Bearer <access token or API key>`; apps send `Authorization: Basic` with their id and secret.',
  },
  invalid_token: {
    status: 401,
    title: 'The token is not valid',
    help: 'The access token is malformed, expired, or its session has ended. Refresh it with POST /auth/refresh, or sign in again.',
    isLogged: true,
  },
  invalid_api_key: {
    status: 401,
    title: 'The API key is not valid',
    help: 'Check that the whole key was copied: svc_ and 32 characters. A key is shown once, when it is created.',
    isGuess: true,
    isLogged: true,
  },
  api_key_revoked: {
    status: 401,
    title: 'The API key was revoked',
    help: 'Revoking is permanent. Create a new key with POST /v1/api-keys.',
    isGuess: true,
    isLogged: true,
  },
  api_key_expired: {
    status: 401,
    title: 'The API key has expired',
    help: 'Create a new key with POST /v1/api-keys; rotate the next one before it expires.',
    isGuess: true,
    isLogged: true,
  },
  invalid_refresh_token: {
    status: 401,
    title: 'The refresh token is not valid',
    help: 'It was never issued, or its session has ended. Sign in again.',
    isGuess: true,
    isLogged: true,
  },
  refresh_token_reused: {
    status: 401,
    title: 'The refresh token was used before',
    help: 'A rotated token was presented again, so its session was ended. Sign in again, refresh one at a time, and send an Idempotency-Key so that a request whose response was lost can be repeated.',
    isGuess: true,
    isLogged: true,
  },
  insufficient_balance: {
    status: 402,
    title: 'The balance is too low',
    help: 'The account has less than the amount of this charge. Nothing was charged.',
  },
  quota_exhausted: {
    status: 402,
    title: 'The quota of the key is used up',
    help: 'Nothing was consumed. Wait for the seconds in Retry-After, where there are any, or ask the owner of the key for more.',
    isLogged: true,
  },
  spend_limit_reached: {
    status: 402,
    title: 'The key has spent its limit',
    help: 'The charge would pass a limit of this key for the day, the month or in total. Nothing was charged. Days and months are those of UTC; Retry-After says when the next begins.',
  },
  insufficient_scope: {
    status: 403,
    title: 'The key lacks a scope',
    help: 'Use a key with the scope that WWW-Authenticate names, or one without scopes.',
    isLogged: true,
  },
  session_required: {
    status: 403,
    title: 'Only a signed-in person may do this',
    help: 'Creating a key, rotating it and extending its rights need an access token; an agent token opens the hub only.',
    isLogged: true,
  },
  account_suspended: {
    status: 403,
    title: 'The account is suspended',
    help: 'Ask the operator of this service. Keys work again once the account is active.',
    isLogged: true,
  },
  charge_not_authorized: {
    status: 403,
    title: 'The charge is not authorised',
    help: 'The user must authorise this app: PUT /v1/me/charge-authorizations/{app_id}. A `key_id` must be a key of this user that is neither revoked nor expired.',
    isLogged: true,
  },
  network_not_allowed: {
    status: 403,
    title: 'The key may not be used from this network',
    help: 'The key lists allowed_networks and the request came from elsewhere. Change them with PATCH /v1/api-keys/{key_id}.',
    isLogged: true,
  },
  forbidden: { status: 403, title: 'This is not allowed', help: 'The detail says why.', isLogged: true },
  reauthentication_required: {
    status: 403,
    title: 'Sign in again',
    help: 'This needs a sign-in of the last 30 minutes; refreshing tokens is not one. Sign in by a new link or code and repeat the request.',
    isLogged: true,
  },
  not_found: {
    status: 404,
    title: 'There is nothing here',
    help: 'Check the path and the id. /docs lists all paths. Resources of other users are answered like missing ones.',
  },
  method_not_allowed: {
    status: 405,
    title: 'The method is not allowed here',
    help: 'The `Allow` header lists the methods of this path.',
  },
  payload_too_large: {
    status: 413,
    title: 'The body is too large',
    help: 'A request body has at most 16 KiB, unless its route says otherwise.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'The body must be plain JSON',
    help: 'Send `Content-Type: application/json`, once, without Content-Encoding.',
  },
  upgrade_required: {
    status: 426,
    title: 'This path needs a WebSocket upgrade',
    help: 'Connect a WebSocket client with an agent token and the subprotocol keyway.hub.v1.',
  },
  last_administrator: {
    status: 409,
    title: 'Nobody would administer the service',
    help: 'Make somebody else an administrator first.',
  },
  mail_not_available: {
    status: 409,
    title: 'The mail cannot be sent again',
    help: 'Only a notice that failed can be sent again, and only while a link in it is valid. For a new link the person asks again, or is invited again.',
  },
  key_limit_reached: {
    status: 409,
    title: 'There are too many active keys',
    help: 'Revoke a key that is not needed, or rotate one, which also works at the limit.',
  },
  key_conflict: {
    status: 409,
    title: 'Another account has this key',
    help: 'A key belongs to one account. Nothing was imported; take the key out of the list.',
  },
  idempotency_conflict: {
    status: 409,
    title: 'The Idempotency-Key was used with another body',
    help: 'Use a new random key for each charge, and the same key and body to repeat one.',
  },
  api_key_inactive: {
    status: 409,
    title: 'The key is not active',
    help: 'A revoked or expired key cannot be rotated. Create a new one with POST /v1/api-keys.',
  },
  api_key_replaced: {
    status: 409,
    title: 'The key has a successor',
    help: 'Rotate the key that `replaced_by` names.',
  },
  magic_link_expired: {
    status: 410,
    title: 'The sign-in link has expired',
    help: 'Links are valid for five minutes. Ask for a new one with POST /auth/send-magic-link.',
    isGuess: true,
    isLogged: true,
  },
  magic_link_used: {
    status: 410,
    title: 'The sign-in link was used',
    help: 'A link works once, and using one invalidates the others of its address. Ask for a new one.',
    isGuess: true,
    isLogged: true,
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    help: 'Wait for the number of seconds in Retry-After. Retrying earlier does not prolong the wait.',
    isLogged: true,
  },
  unavailable: {
    status: 503,
    title: 'The service is not available',
    help: 'The service is overloaded, or its database cannot be reached. Nothing was granted. Retry after the number of seconds in Retry-After.',
  },
  internal_error: {
    status: 500,
    title: 'Something went wrong here',
    help: 'This is an error of the service. Report the request_id to its operator.',
  },
}

export interface ProblemContext {
  requestId: string
  publicUrl: string
  /** Whether to name the setting behind a refusal: only with the local inbox, where the operator is the caller. */
  namesSettings?: boolean
  /** Replaces the status of the code, for refusals by the HTTP parser (408, 431). */
  status?: number
}

/** Builds every problem document, for routes, the HTTP parser and the hub's handshake. */
export function problemOf(error: KeywayError, context: ProblemContext): Problem {
  const kind = PROBLEMS[error.code]
  const { errors, retryAfter, window, setting } = error.extras
  return {
    type: `${context.publicUrl}/errors/${error.code}`,
    title: kind.title,
    status: context.status ?? kind.status,
    detail: kind.status === 404 ? withDocs(error.message) : error.message,
    code: error.code,
    request_id: context.requestId,
    ...(errors && { errors }),
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
    ...(window && { window }),
    ...(setting && context.namesSettings && { setting }),
  }
}

/** The detail of a 404, with a reference to /docs. */
export function withDocs(detail: string): string {
  return detail.includes('/docs') ? detail : `${detail} /docs lists what there is.`
}
