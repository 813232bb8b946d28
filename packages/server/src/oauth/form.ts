import { invalidRequest } from '../errors.ts'
import { OAuthError } from './oauth-error.ts'

/** Maximum number of parameters, more than any request needs. */
const MAX_PARAMETERS = 64
/** Maximum number of characters of a parameter's name in an error message. */
const MAX_SHOWN_NAME_LENGTH = 64

/** The parameters of a form. Each occurs once; parameters without a value are left out. */
export type Form = Readonly<Record<string, string>>

/**
 * Parses a form-encoded body (RFC 6749 appendix B, section 3.1).
 *
 * @throws KeywayError `invalid_request` for a repeated parameter, too many parameters, and text that has NUL or is not
 *   UTF-8; OAuthError `invalid_target` for a repeated `resource` or `audience`
 */
export function parseForm(body: Buffer): Form {
  const form: Record<string, string> = Object.create(null)
  const names = new Set<string>()
  for (const [name, value] of new URLSearchParams(decodeUtf8(body))) {
    if (names.has(name)) throw repeatedParameter(name)
    names.add(name)
    if (names.size > MAX_PARAMETERS)
      throw invalidParameter('body', `must have at most ${MAX_PARAMETERS} parameters`)
    if (!value.isWellFormed() || /[\0\ufffd]/.test(value))
      throw invalidParameter(name, 'must be UTF-8 without NUL')
    if (value !== '') form[name] = value
  }
  return form
}

/**
 * The scopes, separated by single spaces (RFC 6749 section 3.3), without repetitions; undefined if the parameter is
 * absent.
 *
 * @throws OAuthError `invalid_scope` if it is malformed
 */
export function scopesOf({ scope }: Form): string[] | undefined {
  if (scope === undefined) return undefined
  if (!/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/.test(scope))
    throw new OAuthError('invalid_scope', 'scope must be names separated by single spaces.')
  return [...new Set(scope.split(' '))]
}

/**
 * The requested audience: `resource` (RFC 8707) or `audience` (RFC 8693), which mean the same here; undefined if both
 * are absent.
 *
 * @throws OAuthError `invalid_target` if they differ
 */
export function audienceOf({ resource, audience = resource }: Form): string | undefined {
  if (resource !== undefined && resource !== audience)
    throw new OAuthError('invalid_target', 'resource and audience must name the same audience.')
  return audience
}

function decodeUtf8(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch {
    throw invalidParameter('body', 'must be a form in UTF-8')
  }
}

/**
 * Refuses invalid UTF-8. `parseForm` also refuses U+FFFD, with which URLSearchParams replaces invalid percent-encoded
 * bytes.
 */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function repeatedParameter(name: string) {
  if (name === 'resource' || name === 'audience')
    return new OAuthError('invalid_target', 'Ask for one audience at a time.')
  return invalidParameter(name, 'must be sent once')
}

function invalidParameter(name: string, message: string) {
  return invalidRequest([{ field: name.slice(0, MAX_SHOWN_NAME_LENGTH), message }])
}
