import { isLoopbackHost } from '../network.ts'

/**
 * Whether a client may be answered at this URI: exactly a registered one (RFC 9700 section 2.1). Of URIs on loopback the
 * port may be any other, since native apps cannot choose it (RFC 8252 section 7.3).
 */
export function acceptsRedirectUri(registered: readonly string[], asked: string): boolean {
  if (registered.includes(asked)) return true
  const loopback = withoutLoopbackPort(asked)
  return loopback !== null && registered.some(each => withoutLoopbackPort(each) === loopback)
}

/** Null for a URI that is not on loopback, or not written in its normal form: then only the text itself counts. */
function withoutLoopbackPort(text: string): string | null {
  const url = URL.parse(text)
  if (url?.protocol !== 'http:' || !isLoopbackHost(url.hostname) || url.href !== text) return null
  if (url.username !== '' || url.password !== '' || text.includes('#')) return null
  url.port = ''
  return url.href
}

/** The origin of a redirect URI of a web page; null for one of a native app. */
export function webOriginOf(redirectUri: string): string | null {
  const url = URL.parse(redirectUri)
  return url && /^https?:$/.test(url.protocol) ? url.origin : null
}
