import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import { SealError, type Secrets } from '../secrets.ts'
import type { RequestParams } from './authorization-request.ts'

/** Lifetime of a pushed request: the time from the app's push to the browser's request. */
const PUSHED_REQUEST_LIFETIME = MINUTE
/** Prefix of request URIs (RFC 9126 section 2.2). */
const URI_PREFIX = 'urn:ietf:params:oauth:request_uri:'
const SEAL_CONTEXT = 'pushed'

export interface PushedRequest {
  id: string
  params: RequestParams
}

export interface PushedRequests {
  /**
   * Creates the `request_uri` of a validated request. It can be answered with an authorization code only once.
   * `expiresIn` is in seconds.
   */
  push(params: RequestParams): { requestUri: string; expiresIn: number }
  /** Reads a `request_uri`. `expired` also if it is not genuine; null if it lacks the prefix of request URIs. */
  open(requestUri: string): PushedRequest | 'expired' | null
}

/**
 * Pushed authorization requests (RFC 9126). The URI is the request itself, sealed: nothing is stored before the
 * authorization code that answers it, so unanswered requests take no rows.
 */
export function createPushedRequests({ secrets, clock }: { secrets: Secrets; clock: Clock }): PushedRequests {
  return {
    push(params) {
      const now = clock.now()
      const content = JSON.stringify({ id: newId(now), params, expiresAt: now + PUSHED_REQUEST_LIFETIME })
      const sealedRequest = secrets.seal('authorization-request', Buffer.from(content), SEAL_CONTEXT)
      return { requestUri: URI_PREFIX + sealedRequest, expiresIn: PUSHED_REQUEST_LIFETIME / SECOND }
    },

    open(requestUri) {
      if (!requestUri.startsWith(URI_PREFIX)) return null
      try {
        const content = secrets.open(
          'authorization-request',
          requestUri.slice(URI_PREFIX.length),
          SEAL_CONTEXT,
        )
        const { expiresAt, ...pushed } = JSON.parse(content.toString()) as PushedRequest & {
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
