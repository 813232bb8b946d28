import { hex } from './environment.ts'
import { KeywayError } from './errors.ts'
import type { StoredTokens, TokenStore } from './token-store.ts'
import { createTurns } from './turns.ts'

export interface CookieTokenStoresOptions {
  /**
   * At least 32 characters that only the servers of your site know, the same in all of their processes: derives the
   * Idempotency-Key of a refresh.
   */
  secret: string
  /** The cookie's name after the prefix. Default `keyway-tokens`. */
  name?: string | undefined
  /** False only for development over http: without `Secure` and the prefix `__Host-`. Default true. */
  secure?: boolean | undefined
  /** How long the browser keeps the cookie, in seconds. Default 30 days, as the service keeps a session that is not used. */
  maxAgeSeconds?: number | undefined
}

/** The tokens of one request's browser. */
export interface CookieTokenStore extends TokenStore {
  /** For the response, each as a `Set-Cookie` header; empty while nothing changed. Such a response must not be cached. */
  readonly setCookies: string[]
}

const MIN_SECRET_LENGTH = 32
const DEFAULT_MAX_AGE_SECONDS = 2_592_000
/** Browsers store no longer ones, the name and attributes included (RFC 6265 section 6.1). */
const MAX_COOKIE_BYTES = 4096
/** Access token, refresh token and session id. */
const VALUE = /^([\w.-]+)~([\w.-]+)~([\w-]+)$/

/**
 * Stores in a cookie, for sites whose server calls the service for its visitors. Call it once for a process, and the
 * returned function for each request with its `Cookie` header. The cookie is HttpOnly, Secure, SameSite=Lax and bound to
 * its host (`__Host-`): neither scripts nor other sites can read it.
 *
 *     const tokensOf = cookieTokenStores({ secret })
 *     const tokens = tokensOf(request.headers.get('cookie'))
 *     const keyway = new Keyway({ url, tokens })
 *     for (const cookie of tokens.setCookies) response.headers.append('set-cookie', cookie)
 *
 * Several requests with one expired token refresh once in a process. Processes do not know of each other: they send the same
 * Idempotency-Key, which is derived from the token and the secret, so all get the same successor.
 *
 * @throws KeywayError `invalid_configuration`
 */
export function cookieTokenStores(
  options: CookieTokenStoresOptions,
): (cookieHeader: string | null | undefined) => CookieTokenStore {
  const { secret, name = 'keyway-tokens', secure = true, maxAgeSeconds = DEFAULT_MAX_AGE_SECONDS } = options
  check(secret, name, maxAgeSeconds)
  const cookie = `${secure ? '__Host-' : ''}${name}`
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  const keyOf = refreshKeys(secret)
  const refreshes = new Map<string, Refreshes>()

  return header => {
    let held = tokensIn(header, cookie)
    let setCookies: string[] = []
    const hold = (next: StoredTokens | undefined) => {
      setCookies = [setCookie(cookie, next && cookieValue(next), next ? maxAgeSeconds : 0, attributes)]
      held = next
    }
    return {
      get setCookies() {
        return setCookies
      },
      get: async () => held && { ...held, refreshKey: await keyOf(held.refresh) },
      set(next) {
        // Before each refresh the client stores the Idempotency-Key, which is derived here.
        if (next.access !== held?.access || next.refresh !== held.refresh) hold({ ...next })
      },
      delete: () => hold(undefined),
      exclusive: work => {
        const begun = held
        if (!begun) return work()
        return together(refreshes, begun.refresh, async shared => {
          if (shared.successor?.sessionId === begun.sessionId) hold(shared.successor)
          const answer = await work()
          if (held !== begun) shared.successor = held
          return answer
        })
      },
    }
  }
}

/** A refresh that concurrent requests with one refresh token share. */
interface Refreshes {
  inTurn: ReturnType<typeof createTurns>
  waiting: number
  successor: StoredTokens | undefined
}

async function together<Answer>(
  refreshes: Map<string, Refreshes>,
  token: string,
  work: (shared: Refreshes) => Promise<Answer>,
): Promise<Answer> {
  const shared = refreshes.get(token) ?? { inTurn: createTurns(), waiting: 0, successor: undefined }
  refreshes.set(token, shared)
  shared.waiting++
  try {
    return await shared.inTurn(() => work(shared))
  } finally {
    if (--shared.waiting === 0) refreshes.delete(token)
  }
}

/**
 * HMAC-SHA256 of refresh tokens. Not a hash alone: who stole a token could derive the key, and a replay with it would not
 * be recognised as reuse.
 */
function refreshKeys(secret: string): (refreshToken: string) => Promise<string> {
  const bytes = (text: string) => new TextEncoder().encode(text)
  let key: Promise<CryptoKey> | undefined
  return async refreshToken => {
    key ??= crypto.subtle.importKey('raw', bytes(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
    const mac = await crypto.subtle.sign('HMAC', await key, bytes(`keyway refresh ${refreshToken}`))
    return hex(new Uint8Array(mac))
  }
}

function tokensIn(header: string | null | undefined, cookie: string): StoredTokens | undefined {
  for (const pair of header?.split(';') ?? []) {
    const [name, value = ''] = pair.trim().split('=', 2)
    const [, access, refresh, sessionId] = (name === cookie && VALUE.exec(value)) || []
    if (access && refresh && sessionId) return { access, refresh, sessionId }
  }
  return undefined
}

function cookieValue({ access, refresh, sessionId }: StoredTokens): string {
  const value = `${access}~${refresh}~${sessionId}`
  if (VALUE.test(value)) return value
  throw new KeywayError('bad_response', 'The service answered with tokens that no cookie can hold.')
}

function setCookie(name: string, value = '', maxAgeSeconds: number, attributes: string): string {
  const cookie = `${name}=${value}; Max-Age=${maxAgeSeconds}; ${attributes}`
  if (cookie.length <= MAX_COOKIE_BYTES) return cookie
  throw new KeywayError('bad_response', `The tokens are too long for a cookie (${cookie.length} characters).`)
}

function check(secret: unknown, name: string, maxAgeSeconds: number): void {
  const mistake = (text: string) => new KeywayError('invalid_configuration', text)
  if (typeof secret !== 'string' || secret.length < MIN_SECRET_LENGTH)
    throw mistake(
      `secret: must have at least ${MIN_SECRET_LENGTH} characters, for example openssl rand -hex 32.`,
    )
  if (!/^[\w-]+$/.test(name)) throw mistake(`name: "${name}" must be letters, digits, - and _.`)
  if (!(Number.isSafeInteger(maxAgeSeconds) && maxAgeSeconds > 0))
    throw mistake('maxAgeSeconds: must be a whole number above 0, for example 2592000.')
}
