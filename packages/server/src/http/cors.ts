import type { IncomingMessage } from 'node:http'
import { REQUEST_ID_HEADER } from '../request-id.ts'

const ALLOWED_HEADERS = 'authorization, content-type, idempotency-key'
const EXPOSED_HEADERS = `${REQUEST_ID_HEADER.toLowerCase()}, retry-after, ratelimit, ratelimit-policy, www-authenticate`
const PREFLIGHT_MAX_AGE_SECONDS = '600'

/** Which origins may call a route besides the configured ones: any, or those of the redirect URIs of public clients. */
export type CorsPolicy = 'any' | 'clients'

export interface Cors {
  /**
   * The CORS headers of a response to this request: only `Vary` if the request's origin may not call the route; null if
   * the route can be called from no origin but the service's own.
   */
  headers(incoming: IncomingMessage, policy?: CorsPolicy): Record<string, string> | null
  /**
   * The headers of a preflight response. They list what is allowed, whatever was requested, and nothing for an origin
   * that may not call the route.
   */
  preflight(incoming: IncomingMessage, methods: string, policy?: CorsPolicy): Record<string, string>
  /**
   * Reads the origins of browser clients, at most once a second; returns undefined if nothing has to be read. Must be
   * awaited before `headers` on a route whose policy is `clients`. Never rejects.
   */
  prepare(incoming: IncomingMessage, policy?: CorsPolicy): Promise<void> | undefined
}

/** How long the origins of clients are cached, in milliseconds; a change takes effect after at most this time. */
const CLIENT_ORIGINS_MS = 1000

/**
 * Lets pages of other origins call the API (Fetch standard, "CORS protocol"). Credentials mode is never allowed: the
 * API uses none of the credentials that a browser adds by itself.
 */
export function createCors(
  origins: readonly string[],
  readClientOrigins: () => Promise<readonly string[]> = async () => [],
): Cors {
  const configuredOrigins = new Set(origins)
  let clientOrigins = new Set<string>()
  let lastReadAt = Number.NEGATIVE_INFINITY
  return { headers, preflight, prepare }

  function prepare({ headers: { origin } }: IncomingMessage, policy?: CorsPolicy): Promise<void> | undefined {
    if (policy !== 'clients' || origin === undefined) return undefined
    const now = performance.now()
    if (now < lastReadAt + CLIENT_ORIGINS_MS) return undefined
    lastReadAt = now
    // If the database is unavailable, the origins that were read last apply, so that pages of clients can read the
    // error.
    return readClientOrigins().then(
      newOrigins => {
        clientOrigins = new Set(newOrigins)
      },
      () => {},
    )
  }

  function headers(incoming: IncomingMessage, policy?: CorsPolicy): Record<string, string> | null {
    if (policy === 'any') return { 'Access-Control-Allow-Origin': '*' }
    if (configuredOrigins.size === 0 && policy === undefined) return null
    const { origin } = incoming.headers
    const isAllowed =
      origin !== undefined && (configuredOrigins.has(origin) || (policy && clientOrigins.has(origin)))
    if (!isAllowed) return { Vary: 'Origin' }
    return {
      Vary: 'Origin',
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Expose-Headers': EXPOSED_HEADERS,
    }
  }

  function preflight(
    incoming: IncomingMessage,
    methods: string,
    policy?: CorsPolicy,
  ): Record<string, string> {
    const responseHeaders = headers(incoming, policy)
    if (!responseHeaders?.['Access-Control-Allow-Origin']) return responseHeaders ?? {}
    return {
      ...responseHeaders,
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Allow-Headers': ALLOWED_HEADERS,
      'Access-Control-Max-Age': PREFLIGHT_MAX_AGE_SECONDS,
    }
  }
}
