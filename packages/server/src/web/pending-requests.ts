import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { RequestParams } from '../authorizations/authorization-request.ts'
import { type Clock, HOUR, type Instant, SECOND } from '../clock.ts'
import { randomToken, SealError, type Secrets } from '../secrets.ts'

/** An authorization request for which this browser signs in or asks for consent. */
export interface PendingRequest {
  id: string
  at: Instant
  params: RequestParams
  /** The id of the pushed request; null for other requests. */
  pushedId: string | null
}

const KEPT_FOR = HOUR
/** All of them in their cookie, sealed; browsers allow 4,096 bytes with its name and attributes. */
const MAX_CHARACTERS = 2900
const CONTEXT = 'cookie'

export interface PendingRequests {
  /** Remembers the request, and forgets the oldest ones where there is no room for all. */
  add(c: Context, request: Omit<PendingRequest, 'id'>): PendingRequest
  find(c: Context, id: string | undefined): PendingRequest | null
  remove(c: Context, id: string): void
}

/**
 * Authorization requests are kept in the browser that brought them, in a sealed cookie. So they go on nowhere else,
 * and a request costs nothing to store before somebody has signed in.
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
      const added = { ...request, id: randomToken(12) }
      write(c, [added, ...read(c)])
      return added
    },
    find: (c, id) => read(c).find(request => request.id === id) ?? null,
    remove(c, id) {
      const others = read(c).filter(request => request.id !== id)
      write(c, others)
    },
  }

  function read(c: Context): PendingRequest[] {
    const sealed = getCookie(c, name)
    if (!sealed) return []
    try {
      const requests = JSON.parse(secrets.open('authorization-request', sealed, CONTEXT).toString())
      return (requests as PendingRequest[]).filter(({ at }) => clock.now() < at + KEPT_FOR)
    } catch (error) {
      // Forged, or of a secret that was removed since.
      if (error instanceof SealError) return []
      throw error
    }
  }

  function write(c: Context, requests: PendingRequest[]): void {
    const kept = [...requests]
    while (JSON.stringify(kept).length > MAX_CHARACTERS) kept.pop()
    const sealed = secrets.seal('authorization-request', Buffer.from(JSON.stringify(kept)), CONTEXT)
    setCookie(c, name, sealed, { ...attributes, maxAge: KEPT_FOR / SECOND })
  }
}
