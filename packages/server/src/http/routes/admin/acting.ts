import { z } from 'zod'
import { hasControlCharacters } from '../../../api-keys/key-name.ts'
import type { ActedBy } from '../../../audit/audit.ts'
import { MAX_REASON_LENGTH } from '../../../audit/audit-event.ts'
import { KeywayError } from '../../../errors.ts'
import type { Owner } from '../../authenticate.ts'
import { optional, text } from '../../body-fields.ts'
import type { RouteInput } from '../../route.ts'

export const TAG = 'Administration'

type Input = Pick<RouteInput<'admin:read', unknown, unknown>, 'caller' | 'requestId'> & { principal: Owner }

/** The actor and the reason of an administrative call, for the audit. */
export function toActedBy({ principal, caller, requestId }: Input, reason: string | null = null): ActedBy {
  const { userId, keyId, session } = principal
  return {
    actor: { type: 'user', id: userId, key_id: keyId, session_id: session?.id ?? null },
    caller,
    requestId,
    reason,
  }
}

/** Refuses keys, since only a signed-in person may grant rights. @throws KeywayError `session_required` */
export function assertMayGiveRights({ session }: Owner): void {
  if (session) return
  throw new KeywayError(
    'session_required',
    'What gives rights needs a signed-in administrator. Send an access token, or use the keyway command.',
  )
}

export const reason = text('a reason', 'asked for by mail', { min: 1, max: MAX_REASON_LENGTH }).refine(
  value => !hasControlCharacters(value),
  { error: 'must not contain control characters' },
)

/** The body of administrative acts that have no other fields. */
export const reasonBody = z.strictObject({ reason: optional(reason) })
