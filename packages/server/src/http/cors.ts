import type { IncomingMessage } from 'node:http'
import { REQUEST_ID_HEADER } from '../request-id.ts'

const ALLOWED_HEADERS = 'authorization, content-type, idempotency-key'
const EXPOSED_HEADERS = `${REQUEST_ID_HEADER.toLowerCase()}, retry-after, ratelimit, ratelimit-policy, www-authenticate`
/** How long a browser may cache a preflight, in seconds. */
const MAX_AGE = '600'

export interface Cors {
  /** The CORS headers of a response to this request; null if no origin is configured. */
  headers(incoming: IncomingMessage): Record<string, string> | null
  /** The headers of a preflight response. They list what is allowed, whatever was requested. */
  preflight(incoming: IncomingMessage, methods: string): Record<string, string>
}

/**
 * Lets pages of other origins call the API (Fetch standard, "CORS protocol"). Credentials mode is never allowed: the
 * API uses none of the credentials that a browser adds by itself.
 */
export function createCors(origins: readonly string[]): Cors {
  const allowed = new Set(origins)
  return { headers, preflight }

  function headers(incoming: IncomingMessage): Record<string, string> | null {
    if (allowed.size === 0) return null
    const { origin } = incoming.headers
    if (origin === undefined || !allowed.has(origin)) return { Vary: 'Origin' }
    return {
      Vary: 'Origin',
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Expose-Headers': EXPOSED_HEADERS,
    }
  }

  function preflight(incoming: IncomingMessage, methods: string): Record<string, string> {
    const answer = headers(incoming)
    if (!answer?.['Access-Control-Allow-Origin']) return answer ?? {}
    return {
      ...answer,
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Allow-Headers': ALLOWED_HEADERS,
      'Access-Control-Max-Age': MAX_AGE,
    }
  }
}
