import type { RateLimitState } from '../errors.ts'
import type { Answer } from './answer.ts'

export const RATE_LIMIT_FIELDS = ['RateLimit', 'RateLimit-Policy']

/** Adds the header fields of draft-ietf-httpapi-ratelimit-headers-11 to an answer, if limits apply. */
export function withRateLimits(answer: Answer, limits: readonly RateLimitState[] | null | undefined): Answer {
  if (!limits || limits.length === 0) return answer
  return { ...answer, headers: { ...answer.headers, ...rateLimitFields(limits) } }
}

/** Structured fields (RFC 9651): `RateLimit-Policy: "minute";q=100;w=60` and `RateLimit: "minute";r=42;t=30`. */
export function rateLimitFields(limits: readonly RateLimitState[]): Record<string, string> {
  return {
    RateLimit: limits
      .map(({ name, remaining, resetSeconds }) => `"${name}";r=${remaining};t=${resetSeconds}`)
      .join(', '),
    'RateLimit-Policy': limits
      .map(({ name, limit, windowSeconds }) => `"${name}";q=${limit};w=${windowSeconds}`)
      .join(', '),
  }
}
