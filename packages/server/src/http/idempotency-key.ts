import type { IncomingMessage } from 'node:http'
import { invalidRequest } from '../errors.ts'
import type { Route } from './route.ts'

/**
 * Optional for a refresh, where it distinguishes a retry from a stolen token, so it must not be guessable. Required for
 * a charge, where any number that the app has not used before is enough.
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

/** @throws KeywayError `invalid_request` */
export function readIdempotencyKey(
  incoming: IncomingMessage,
  wanted: Route['idempotencyKey'],
): string | null {
  const values = wanted ? incoming.headersDistinct['idempotency-key'] : undefined
  if (!wanted || (values === undefined && wanted === 'optional')) return null
  const { pattern, rule, example } = IDEMPOTENCY_KEYS[wanted]
  if (values?.length === 1 && pattern.test(values[0]!)) return values[0]!
  const message = `must be sent once, ${rule}, for example "${example}"`
  throw invalidRequest([{ field: 'Idempotency-Key', message }])
}
