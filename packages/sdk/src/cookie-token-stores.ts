import { hex } from './environment.ts'
import { KeywayError } from './errors.ts'
import { createMutex } from './mutex.ts'
import type { StoredTokens, TokenStore } from './token-store.ts'

export interface CookieTokenStoresOptions {
  /**
   * At least 32 characters that only the servers of your site know, the same in all of their processes. The
   * Idempotency-Key of a refresh is derived from it.
   */
  secret: string
  /** The cookie's name after the prefix `__Host-`. Default `keyway-tokens`. */
  name?: string | undefined
  /** False, for development over http only, omits `Secure` and the prefix `__Host-`. Default true. */
  secure?: boolean | undefined
  /**
   * How long the browser keeps the cookie, in seconds. Default 30 days, after which the service ends an unused session.
   */
  maxAgeSeconds?: number | undefined
}

/** The tokens of one request's browser. */
export interface CookieTokenStore extends TokenStore {
  /**
   * Values for `Set-Cookie` headers of the response; empty if nothing changed. A response with one must not be cached.
   */
  readonly setCookies: string[]
}

const MIN_SECRET_LENGTH = 32
const DEFAULT_MAX_AGE_SECONDS = 2_592_000
/** Browsers may refuse longer cookies; name and attributes count (RFC 6265 section 6.1). */
const MAX_COOKIE_BYTES = 4096
/** Access token, refresh token and session id. */
const COOKIE_VALUE = /^([\w.-]+)~([\w.-]+)~([\w-]+)$/

/**
 * Stores tokens in a cookie, for sites whose server calls the service for its visitors. Call it once per process, and
 * the returned function for each request with its `Cookie` header. The cookie is HttpOnly, Secure, SameSite=Lax and
 * bound to its host (`__Host-`): neither scripts nor other sites can read it.
 *
 *     const tokensOf = cookieTokenStores({ secret })
 *     const tokens = tokensOf(request.headers.get('cookie'))
 *     const keyway = new Keyway({ url, tokens })
 *     for (const cookie of tokens.setCookies) response.headers.append('set-cookie', cookie)
 *
 * Concurrent requests with one expired token share one refresh within a process. Different processes send the same
 * Idempotency-Key, which is derived from the token and the secret, so all get the same new tokens.
 *
 * @throws KeywayError `invalid_configuration` for an invalid option; the store's methods throw `bad_response` for
 *   tokens that no cookie can hold
 */
export function cookieTokenStores(
  options: CookieTokenStoresOptions,
): (cookieHeader: string | null | undefined) => CookieTokenStore {
  const { secret, name = 'keyway-tokens', secure = true, maxAgeSeconds = DEFAULT_MAX_AGE_SECONDS } = options
  assertOptions(secret, name, maxAgeSeconds)
  const cookie = `${secure ? '__Host-' : ''}${name}`
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  const idempotencyKeyOf = idempotencyKeys(secret)
  const refreshes = new Map<string, SharedRefresh>()

  return header => {
    let current = tokensIn(header, cookie)
    let setCookies: string[] = []
    const replace = (next: StoredTokens | undefined) => {
      setCookies = [setCookie(cookie, next && cookieValue(next), next ? maxAgeSeconds : 0, attributes)]
      current = next
    }
    return {
      get setCookies() {
        return setCookies
      },
      get: async () => current && { ...current, refreshKey: await idempotencyKeyOf(current.refresh) },
      set(next) {
        // A new `refreshKey` alone needs no cookie: this store derives it from the refresh token.
        if (next.access !== current?.access || next.refresh !== current.refresh) replace({ ...next })
      },
      delete: () => replace(undefined),
      exclusive: work => {
        const tokensBefore = current
        if (!tokensBefore) return work()
        return runInTurn(refreshes, tokensBefore.refresh, async sharedRefresh => {
          if (sharedRefresh.successor?.sessionId === tokensBefore.sessionId) replace(sharedRefresh.successor)
          const answer = await work()
          if (current !== tokensBefore) sharedRefresh.successor = current
          return answer
        })
      },
    }
  }
}

/** The state that concurrent requests with the same refresh token share. */
interface SharedRefresh {
  inTurn: ReturnType<typeof createMutex>
  waiting: number
  successor: StoredTokens | undefined
}

async function runInTurn<Answer>(
  refreshes: Map<string, SharedRefresh>,
  token: string,
  work: (sharedRefresh: SharedRefresh) => Promise<Answer>,
): Promise<Answer> {
  const sharedRefresh = refreshes.get(token) ?? { inTurn: createMutex(), waiting: 0, successor: undefined }
  refreshes.set(token, sharedRefresh)
  sharedRefresh.waiting++
  try {
    return await sharedRefresh.inTurn(() => work(sharedRefresh))
  } finally {
    if (--sharedRefresh.waiting === 0) refreshes.delete(token)
  }
}

/**
 * Derives Idempotency-Keys: HMAC-SHA256 of refresh tokens. A plain hash would not do: a thief of a token could
 * derive the key, and a replay with that key would not be recognised as reuse.
 */
function idempotencyKeys(secret: string): (refreshToken: string) => Promise<string> {
  const bytes = (text: string) => new TextEncoder().encode(text)
  let pendingKey: Promise<CryptoKey> | undefined
  return async refreshToken => {
    pendingKey ??= crypto.subtle.importKey('raw', bytes(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
      'sign',
    ])
    const mac = await crypto.subtle.sign('HMAC', await pendingKey, bytes(`keyway refresh ${refreshToken}`))
    return hex(new Uint8Array(mac))
  }
}

function tokensIn(header: string | null | undefined, cookie: string): StoredTokens | undefined {
  for (const pair of header?.split(';') ?? []) {
    const [name, value = ''] = pair.trim().split('=', 2)
    const [, access, refresh, sessionId] = (name === cookie && COOKIE_VALUE.exec(value)) || []
    if (access && refresh && sessionId) return { access, refresh, sessionId }
  }
  return undefined
}

function cookieValue({ access, refresh, sessionId }: StoredTokens): string {
  const value = `${access}~${refresh}~${sessionId}`
  if (COOKIE_VALUE.test(value)) return value
  throw new KeywayError('bad_response', 'The service answered with tokens that no cookie can hold.')
}

function setCookie(name: string, value = '', maxAgeSeconds: number, attributes: string): string {
  const cookie = `${name}=${value}; Max-Age=${maxAgeSeconds}; ${attributes}`
  if (cookie.length <= MAX_COOKIE_BYTES) return cookie
  throw new KeywayError('bad_response', `The tokens are too long for a cookie (${cookie.length} characters).`)
}

function assertOptions(secret: unknown, name: string, maxAgeSeconds: number): void {
  const configurationError = (text: string) => new KeywayError('invalid_configuration', text)
  if (typeof secret !== 'string' || secret.length < MIN_SECRET_LENGTH)
    throw configurationError(
      `secret: must have at least ${MIN_SECRET_LENGTH} characters, for example openssl rand -hex 32.`,
    )
  if (!/^[\w-]+$/.test(name)) throw configurationError(`name: "${name}" must be letters, digits, - and _.`)
  if (!(Number.isSafeInteger(maxAgeSeconds) && maxAgeSeconds > 0))
    throw configurationError('maxAgeSeconds: must be a whole number above 0, for example 2592000.')
}
