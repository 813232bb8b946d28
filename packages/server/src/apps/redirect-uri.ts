import { isLoopbackHost } from '../network.ts'

/**
 * Whether responses to a client may be sent to this URI: it must equal a registered one (RFC 9700 section 2.1). Only
 * the port of a URI on loopback may differ, since native apps cannot choose it (RFC 8252 section 7.3).
 */
export function acceptsRedirectUri(registered: readonly string[], requested: string): boolean {
  if (registered.includes(requested)) return true
  const portlessUri = withoutLoopbackPort(requested)
  return portlessUri !== null && registered.some(each => withoutLoopbackPort(each) === portlessUri)
}

/**
 * The URI without its port. Null unless it is an http URI on loopback in its normal form, without credentials and
 * fragment; any other URI must equal a registered one in full.
 */
function withoutLoopbackPort(text: string): string | null {
  const url = URL.parse(text)
  if (url?.protocol !== 'http:' || !isLoopbackHost(url.hostname) || url.href !== text) return null
  if (url.username !== '' || url.password !== '' || text.includes('#')) return null
  url.port = ''
  return url.href
}

/** The origin of an http or https redirect URI; null for one with a scheme of its own. */
export function webOriginOf(redirectUri: string): string | null {
  const url = URL.parse(redirectUri)
  return url && /^https?:$/.test(url.protocol) ? url.origin : null
}
