import { z } from 'zod'
import { invalidRequest, type KeywayError } from '../errors.ts'
import { decodeCursor } from '../paging.ts'

/** Parameters in which clients might send a credential, although logs and browser histories record URLs. */
const CREDENTIAL_NAMES = new Set(['access_token', 'api_key', 'token', 'refresh_token', 'key'])

/**
 * The query's parameters by name. A credential is refused even if the request has a valid one in a header (RFC 6750
 * section 2.3), and so is a duplicate parameter.
 *
 * @throws KeywayError `invalid_request`; for a credential the error of `refuseCredential`
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

const DEFAULT_PAGE_SIZE = 50
export const MAX_PAGE_SIZE = 100

const limit = z
  .string()
  .regex(/^[1-9]\d{0,2}$/, { error: `must be 1 to ${MAX_PAGE_SIZE}, for example 50` })
  .transform(Number)
  .refine(value => value <= MAX_PAGE_SIZE, { error: `must be 1 to ${MAX_PAGE_SIZE}, for example 50` })
  .default(DEFAULT_PAGE_SIZE)
  .meta({
    description: `1 to ${MAX_PAGE_SIZE}; ${DEFAULT_PAGE_SIZE} by default.`,
    // Documented as a number, although a query contains only text.
    type: 'integer',
    pattern: undefined,
    minimum: 1,
    maximum: MAX_PAGE_SIZE,
    examples: [50],
  })

const cursor = z
  .string()
  .transform((value, context) => {
    const position = decodeCursor(value)
    if (position) return position
    context.addIssue({ code: 'custom', message: 'must be the next_cursor of an earlier answer' })
    return z.NEVER
  })
  .optional()
  .meta({ description: '`next_cursor` of the page before.' })

export const pageQuery = z.object({ limit, cursor })
