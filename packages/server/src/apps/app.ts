import type { Instant } from '../clock.ts'
import { parseId } from '../ids.ts'
import { isLoopbackHost } from '../network.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'

/**
 * The settings of an app. The operator sets them (for example by `keyway apps add` and `apps set`); those of a client
 * that registers or describes itself come from its metadata.
 */
export interface AppSettings {
  name: string
  /** The audience of tokens for the app's own services. */
  audience: string | null
  /** The app's own page for sign-in links. */
  verifyUrl: string | null
  /** Where authorization responses may be sent; see `acceptsRedirectUri`. */
  redirectUris: readonly string[]
  /** Where a browser may be sent after logout (OpenID Connect RP-Initiated Logout 1.0). */
  logoutUris: readonly string[]
  /** Called when one of the app's sessions ends (OpenID Connect Back-Channel Logout 1.0). */
  backchannelLogoutUri: string | null
  /** The algorithm that signs the app's access tokens for this service, and all tokens for the app's audience. */
  tokenAlg: SigningAlg
  /** The algorithm that signs the app's id tokens and logout tokens. */
  idTokenAlg: SigningAlg
  /** Scopes that the app may ask for besides those of `PERSONAL_SCOPES`. */
  scopes: readonly string[]
  /** Whether the app gets its scopes without the consent of people. */
  trusted: boolean
  /**
   * Whether the app runs where no secret can be kept: browsers, phones, other people's machines (RFC 6749 section 2.1).
   */
  isPublic: boolean
  /** The URL of the app's public keys, for `private_key_jwt` (RFC 7523); null for an app that does not use it. */
  jwksUri: string | null
  /** Whether authorization requests without PKCE are refused even if they have a nonce, which could replace it. */
  requirePkce: boolean
}

/** A registered application, which is an OAuth client. */
export interface App extends AppSettings {
  id: string
  firstParty: boolean
  createdAt: Instant
  /**
   * The app has rights over keys and sessions with its id that were created from this instant on; 0 means all
   * (`hasRightsOver`).
   */
  coversFrom: Instant
}

export const DEFAULT_APP_SETTINGS: Omit<AppSettings, 'name'> = {
  audience: null,
  verifyUrl: null,
  redirectUris: [],
  logoutUris: [],
  backchannelLogoutUri: null,
  tokenAlg: 'EdDSA',
  // Default of `id_token_signed_response_alg` (OpenID Connect Dynamic Client Registration 1.0 section 2).
  idTokenAlg: 'RS256',
  scopes: [],
  trusted: false,
  isPublic: false,
  jwksUri: null,
  requirePkce: false,
}

/** Scopes that every app may ask a person for. */
export const PERSONAL_SCOPES = [
  'openid',
  'email',
  'profile',
  'offline_access',
  'agent:connect',
  'agents:send',
  'agents:read',
  'account:read',
  'events:read',
] as const

export function mayRequestScope(app: Pick<App, 'scopes'>, scope: string): boolean {
  return (PERSONAL_SCOPES as readonly string[]).includes(scope) || app.scopes.includes(scope)
}

/** Prefix of the ids of clients that registered themselves. */
export const REGISTERED_PREFIX = 'dyn-'

/**
 * Whether the app registered itself, or describes itself at the URL that is its id: the operator did not register it.
 */
export function isSelfDescribed(appId: string): boolean {
  return appId.startsWith(REGISTERED_PREFIX) || isClientUrl(appId)
}

/**
 * Whether an app may read what the owner attached to a key: first-party apps, and an app that has rights over the key.
 */
export function coversKey(
  app: Pick<App, 'id' | 'firstParty' | 'coversFrom'>,
  key: { appId: string; createdAt: Instant },
): boolean {
  return app.firstParty || hasRightsOver(app, key)
}

/**
 * Whether the app has rights over a key or session that has its id: the app was registered before the key or session
 * was created, or adopted it (docs/decisions/0014-keys.md).
 */
export function hasRightsOver(
  app: Pick<App, 'id' | 'coversFrom'>,
  { appId, createdAt }: { appId: string; createdAt: Instant },
): boolean {
  return app.id === appId && createdAt >= app.coversFrom
}

/**
 * Numbers of keys that are neither revoked nor expired, and of sessions that have neither ended nor reached their longest
 * lifetime (sessions that were idle for too long are counted).
 */
export interface LiveCredentials {
  keys: number
  sessions: number
}

/** The app of a sign-in without an `app_id`. */
export const DEFAULT_APP_ID = 'console'
/** The SDK's command: a built-in public client, the only one that may ask for `keys:create`. */
export const CLI_CLIENT_ID = 'keyway-cli'
/** The app of a key that is created without one. */
export const DEFAULT_KEY_APP_ID = 'service-sdk'

const APP_ID = /^[a-z0-9][a-z0-9._-]{0,63}$/

/**
 * Whether the text may be the id of an app. Such an id is only a label until it is registered, which gives it a name
 * and rights (docs/decisions/0014-keys.md). UUIDs are reserved for ids of the service.
 */
export function isAppId(text: string): boolean {
  return APP_ID.test(text) && parseId(text) === null
}

/** Maximum length of a client id that is the URL of the client's metadata. */
const MAX_CLIENT_URL_LENGTH = 512

/**
 * Whether an id is the URL of a client metadata document: https (http on loopback only), with a path, in its normal
 * form, without query, fragment and credentials.
 */
export function isClientUrl(text: string): boolean {
  const url = text.length <= MAX_CLIENT_URL_LENGTH ? URL.parse(text) : null
  if (url?.protocol !== 'https:' && !(url?.protocol === 'http:' && isLoopbackHost(url.hostname))) return false
  return (
    url.href === text && url.pathname !== '/' && !url.search && !url.hash && !url.username && !url.password
  )
}
