import type { AuthorizationRequest } from '../authorizations/authorization-request.ts'
import type { PageContext, PageKit } from './kit.ts'
import { allowRedirectTo } from './security-headers.ts'

const PATH = '/oauth/consent?request='

/** The path that continues a pending request of this browser. */
export function pathOfRequest(id: string): string {
  return PATH + id
}

/**
 * The authorization request that continues after a sign-in in this browser, if there is one. Also allows the response
 * to redirect to its app.
 */
export async function findWaiting(kit: PageKit, c: PageContext): Promise<AuthorizationRequest | null> {
  const path = kit.cookies.destination(c)
  const pending = path?.startsWith(PATH) ? kit.pendingRequests.find(c, path.slice(PATH.length)) : null
  if (!pending) return null
  const { resume } = await kit.authorizations()
  const { network } = kit.callerOf(c.req.raw, c.env)
  const checked = await resume(pending.params, pending.pushedId, network)
  if (!('request' in checked)) return null
  allowRedirectTo(c, checked.request.redirectUri)
  return checked.request
}
