import type { IncomingMessage } from 'node:http'
import { REQUEST_ID_HEADER } from '../request-id.ts'

const ALLOWED_HEADERS = 'authorization, content-type, idempotency-key'
const EXPOSED_HEADERS = `${REQUEST_ID_HEADER.toLowerCase()}, retry-after, www-authenticate`
/** How long a browser may remember a preflight, in seconds. */
const MAX_AGE = '600'

export interface Cors {
  /** What an answer to this request says about other origins, or null where none is configured. */
  headers(incoming: IncomingMessage): Record<string, string> | null
  /** What a preflight is told. The lists are fixed: nothing that was asked is read or echoed. */
  preflight(incoming: IncomingMessage, methods: string): Record<string, string>
}

/**
 * Other origins that may call the API from a browser (Fetch standard, "CORS protocol"). Credentials are never
 * allowed: the API takes none that a browser would add by itself.
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
