import { DEFAULT_APP_ID } from '../apps/app.ts'
import type { EmailAddress } from '../users/email-address.ts'

/**
 * The link in the mail: the URL of the verification page with the token, the address and, unless it is the default, the
 * app. The URL's own query is kept. No part of the link is taken from request headers.
 */
export function mailedLink(
  verifyUrl: string,
  { token, email, appId }: { token: string; email: EmailAddress; appId: string },
): string {
  const [page = '', ...fragment] = verifyUrl.split('#')
  const values = [
    ['token', token],
    ['email', email],
    ...(appId === DEFAULT_APP_ID ? [] : [['app_id', appId]]),
  ]
  const query = values.map(([name, value]) => `${name}=${percentEncode(value!)}`).join('&')
  const separator = !page.includes('?') ? '?' : /[?&]$/.test(page) ? '' : '&'
  return [`${page}${separator}${query}`, ...fragment].join('#')
}

/** Encodes all but RFC 3986's unreserved characters, since some mail programs end links at `'`, `(`, `*` or `!`. */
function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
