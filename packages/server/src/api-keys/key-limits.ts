import type { Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { longestOf, type RateWindow, type Wait, windowWait } from '../rate-windows.ts'
import type { Store } from '../store.ts'

export interface KeyLimits {
  /** Maximum active keys of one user; see `refusalByLimits`. */
  maxActiveKeys: number
  /** How many keys one user may create in a time window, rotations included. */
  creationLimits: readonly RateWindow[]
}

/** Why a key is created. A rotation without overlap revokes the old key in the same commit. */
export type KeyPurpose = 'creation' | 'rotation' | 'rotation without overlap'

export type LimitRefusal = { limit: 'active' } | { limit: 'creation'; wait: Wait }

/**
 * Why this user may not create another key now, or null. The rule:
 *
 * - Every active key takes one of `maxActiveKeys` places, including a rotated one during its overlap.
 * - A creation needs a free place.
 * - A rotation with overlap may take one place beyond the limit, so that it works when all are taken. That place is
 *   available once: at most `maxActiveKeys` + 1 keys are active.
 * - A rotation without overlap takes its predecessor's place, and always works.
 * - All three count towards `creationLimits`, in sliding windows.
 *
 * Exact under `users.lock`; also called before it, so that a refusal costs neither a lock nor a write.
 */
export async function refusalByLimits(
  { apiKeys }: Pick<Store, 'apiKeys'>,
  userId: string,
  purpose: KeyPurpose,
  { maxActiveKeys, creationLimits }: KeyLimits,
  now: Instant,
): Promise<LimitRefusal | null> {
  // Checked first, since waiting does not help against this refusal.
  if (purpose !== 'rotation without overlap') {
    const places = purpose === 'rotation' ? maxActiveKeys + 1 : maxActiveKeys
    if ((await apiKeys.countActive(userId, now, places)) >= places) return { limit: 'active' }
  }
  const waits = creationLimits.map(async window =>
    windowWait(window, await apiKeys.nthLastCreation(userId, window.limit), now),
  )
  const wait = longestOf(await Promise.all(waits))
  return wait && { limit: 'creation', wait }
}

export function limitReached(refusal: LimitRefusal, { maxActiveKeys }: KeyLimits): KeywayError {
  if (refusal.limit === 'active') {
    return new KeywayError(
      'key_limit_reached',
      `This account has ${maxActiveKeys} active keys, which is the limit; replaced ones count until they end. Revoke one first, or rotate one with overlap_seconds 0.`,
    )
  }
  const { retryAfter, window } = refusal.wait
  const detail = `Too many keys were made within this ${window}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
  return new KeywayError('rate_limited', detail, {
    retryAfter,
    window,
    setting: 'KEYWAY_KEY_CREATION_LIMITS',
  })
}
