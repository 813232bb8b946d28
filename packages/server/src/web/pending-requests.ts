import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { RequestParams } from '../authorizations/authorization-request.ts'
import { type Clock, HOUR, type Instant, SECOND } from '../clock.ts'
import { randomToken, SealError, type Secrets } from '../secrets.ts'

/** An authorization request that waits in this browser until the person has signed in or consented. */
export interface PendingRequest {
  id: string
  at: Instant
  params: RequestParams
  /** The id of the pushed request; null for other requests. */
  pushedId: string | null
}

const RETENTION = HOUR
/** Maximum length of the JSON of all requests, which must fit into a cookie of 4,096 bytes when it is sealed. */
const MAX_CHARACTERS = 2900
const SEAL_CONTEXT = 'cookie'

export interface PendingRequests {
  /** Stores the request. If there is no room for all, drops the oldest ones, and this one if it alone is too long. */
  add(c: Context, request: Omit<PendingRequest, 'id'>): PendingRequest
  find(c: Context, id: string | undefined): PendingRequest | null
  remove(c: Context, id: string): void
}

/**
 * Stores authorization requests in the browser that sent them, in a sealed cookie. No other browser can continue them,
 * and the service stores nothing before somebody has signed in.
 */
export function createPendingRequests({
  secrets,
  clock,
  publicUrl,
}: {
  secrets: Secrets
  clock: Clock
  publicUrl: string
}): PendingRequests {
  const secure = publicUrl.startsWith('https:')
  const name = `${secure ? '__Host-' : ''}keyway_requests`
  const attributes = { path: '/', httpOnly: true, sameSite: 'Lax', secure } as const

  return {
    add(c, request) {
      const pendingRequest = { ...request, id: randomToken(12) }
      write(c, [pendingRequest, ...read(c)])
      return pendingRequest
    },
    find: (c, id) => read(c).find(request => request.id === id) ?? null,
    remove(c, id) {
      const otherRequests = read(c).filter(request => request.id !== id)
      write(c, otherRequests)
    },
  }

  function read(c: Context): PendingRequest[] {
    const sealedRequests = getCookie(c, name)
    if (!sealedRequests) return []
    try {
      const requests = JSON.parse(
        secrets.open('authorization-request', sealedRequests, SEAL_CONTEXT).toString(),
      )
      return (requests as PendingRequest[]).filter(({ at }) => clock.now() < at + RETENTION)
    } catch (error) {
      // The cookie was forged, or sealed under a secret that was removed since.
      if (error instanceof SealError) return []
      throw error
    }
  }

  function write(c: Context, requests: PendingRequest[]): void {
    const requestsThatFit = [...requests]
    while (JSON.stringify(requestsThatFit).length > MAX_CHARACTERS) requestsThatFit.pop()
    const sealedRequests = secrets.seal(
      'authorization-request',
      Buffer.from(JSON.stringify(requestsThatFit)),
      SEAL_CONTEXT,
    )
    setCookie(c, name, sealedRequests, { ...attributes, maxAge: RETENTION / SECOND })
  }
}
