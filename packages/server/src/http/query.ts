import { invalidRequest, type KeywayError } from '../errors.ts'

/** Names under which credentials are handed about in URLs, where logs and histories keep them. */
const CREDENTIAL_NAMES = new Set(['access_token', 'api_key', 'token', 'refresh_token', 'key'])

/**
 * The query's parameters by name. A credential in it is refused even beside a good one (RFC 6750 section
 * 2.3), and a parameter given twice has no meaning.
 *
 * @throws KeywayError `invalid_request`
 */
export function readQuery(
  url: string,
  refuseCredential: (field: string) => KeywayError = credentialInUrl,
): Record<string, string> {
  const query: Record<string, string> = Object.create(null)
  const start = url.indexOf('?')
  if (start < 0) return query
  for (const [name, value] of new URLSearchParams(url.slice(start))) {
    if (CREDENTIAL_NAMES.has(name)) throw refuseCredential(name)
    if (name in query) throw invalidRequest([{ field: name.slice(0, 64), message: 'must be given once' }])
    query[name] = value
  }
  return query
}

function credentialInUrl(field: string): KeywayError {
  const message = 'is never accepted in a URL; send it in the body or the Authorization header'
  return invalidRequest([{ field, message }])
}
