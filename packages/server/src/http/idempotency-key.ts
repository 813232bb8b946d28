import type { IncomingMessage } from 'node:http'
import { invalidRequest } from '../errors.ts'
import type { Route } from './route.ts'

/**
 * `optional` is for a refresh, where the Idempotency-Key distinguishes a retry from a stolen refresh token, and so must
 * not be guessable.
 * `required` is for a charge, where any text that the app has not used before is enough.
 */
export const IDEMPOTENCY_KEYS = {
  optional: {
    pattern: /^[A-Za-z0-9_-]{16,128}$/,
    rule: '16 to 128 random characters of A-Z a-z 0-9 _ -',
    example: 'u5d1Zp8yQm4kR0vT2xWc',
  },
  required: {
    pattern: /^[\x21-\x7e]{1,255}$/,
    rule: '1 to 255 printable ASCII characters without spaces, new for each charge',
    example: 'order-4711',
  },
} as const

/**
 * The request's Idempotency-Key; null if the route reads none, or if it is optional and absent.
 *
 * @throws KeywayError `invalid_request` if a required key is absent, or the key is malformed or was sent twice
 */
export function readIdempotencyKey(
  incoming: IncomingMessage,
  requirement: Route['idempotencyKey'],
): string | null {
  const values = requirement ? incoming.headersDistinct['idempotency-key'] : undefined
  if (!requirement || (values === undefined && requirement === 'optional')) return null
  const { pattern, rule, example } = IDEMPOTENCY_KEYS[requirement]
  if (values?.length === 1 && pattern.test(values[0]!)) return values[0]!
  const message = `must be sent once, ${rule}, for example "${example}"`
  throw invalidRequest([{ field: 'Idempotency-Key', message }])
}
