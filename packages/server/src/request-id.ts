import type { Instant } from './clock.ts'
import { newId } from './ids.ts'

/** Set on every response, and as `request_id` in problem documents and the log. Never taken from a client. */
export const REQUEST_ID_HEADER = 'X-Request-Id'

export function newRequestId(now: Instant): string {
  return newId(now)
}
