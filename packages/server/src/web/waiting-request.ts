import type { AuthorizationRequest } from '../authorizations/authorization-request.ts'
import type { PageContext, PageKit } from './kit.ts'
import { allowRedirectTo } from './security-headers.ts'

const PATH_PREFIX = '/oauth/consent?request='

/** The path that continues a pending request of this browser. */
export function pathOfRequest(id: string): string {
  return PATH_PREFIX + id
}

/** Returns the request that continues after a sign-in in this browser, if any, and allows redirects to its app. */
export async function prepareWaitingRequest(
  kit: PageKit,
  c: PageContext,
): Promise<AuthorizationRequest | null> {
  const path = kit.cookies.destination(c)
  if (!path?.startsWith(PATH_PREFIX)) return null
  const pendingRequest = kit.pendingRequests.find(c, path.slice(PATH_PREFIX.length))
  if (!pendingRequest) return null
  const { resume } = await kit.authorizations()
  const { network } = kit.callerOf(c.req.raw, c.env)
  const checkedRequest = await resume(pendingRequest.params, pendingRequest.pushedId, network)
  if (!('request' in checkedRequest)) return null
  allowRedirectTo(c, checkedRequest.request.redirectUri)
  return checkedRequest.request
}
