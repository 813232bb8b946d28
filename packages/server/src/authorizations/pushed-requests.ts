import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import { SealError, type Secrets } from '../secrets.ts'
import type { RequestParams } from './authorization-request.ts'

/** How long a browser may take from the app to the authorization endpoint. */
const PUSHED_LIFETIME = MINUTE
/** RFC 9126 section 2.2. */
const URN = 'urn:ietf:params:oauth:request_uri:'
const CONTEXT = 'pushed'

export interface PushedRequest {
  id: string
  params: RequestParams
}

export interface PushedRequests {
  /** The `request_uri` of a validated request, good for one code. */
  push(params: RequestParams): { requestUri: string; expiresIn: number }
  /** Null for the URI of another server. */
  open(requestUri: string): PushedRequest | 'expired' | null
}

/**
 * Pushed authorization requests (RFC 9126). The URI is the request itself, sealed: nothing is stored until a code
 * answers it, so unanswered requests take no rows.
 */
export function createPushedRequests({ secrets, clock }: { secrets: Secrets; clock: Clock }): PushedRequests {
  return {
    push(params) {
      const now = clock.now()
      const content = JSON.stringify({ id: newId(now), params, expiresAt: now + PUSHED_LIFETIME })
      const sealed = secrets.seal('authorization-request', Buffer.from(content), CONTEXT)
      return { requestUri: URN + sealed, expiresIn: PUSHED_LIFETIME / SECOND }
    },

    open(requestUri) {
      if (!requestUri.startsWith(URN)) return null
      try {
        const opened = secrets.open('authorization-request', requestUri.slice(URN.length), CONTEXT)
        const { expiresAt, ...pushed } = JSON.parse(opened.toString()) as PushedRequest & {
          expiresAt: Instant
        }
        return clock.now() < expiresAt ? pushed : 'expired'
      } catch (error) {
        if (error instanceof SealError) return 'expired'
        throw error
      }
    },
  }
}
