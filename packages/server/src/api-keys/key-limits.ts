import type { Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { longestOf, type RateWindow, type Wait, waitFor } from '../rate-windows.ts'
import type { Store } from '../store.ts'

export interface KeyLimits {
  /** Keys of one person that may be used at once; see `refusalByLimits`. */
  maxActiveKeys: number
  /** Keys that one person creates, rotations included. */
  creationLimits: readonly RateWindow[]
}

/** What one more key is made for. A rotation without overlap ends one key with the same commit. */
export type Making = 'creation' | 'rotation' | 'rotation without overlap'

export type LimitRefusal = { limit: 'active' } | { limit: 'creation'; wait: Wait }

/**
 * Why no further key of this person may be made now, or null. The whole rule:
 *
 * - Every key that may be used takes one of `maxActiveKeys` places, a replaced one in its overlap too.
 * - A creation needs a free place.
 * - A rotation with an overlap may take one place beyond the limit, so that it works where all are taken; while that
 *   one is in use there is no other. So at most `maxActiveKeys` + 1 keys can be used.
 * - A rotation without overlap takes its predecessor's place, and so always works.
 * - All three count as keys made, in sliding windows.
 *
 * Exact behind `users.lock`; asked before it too, so that a refusal costs neither lock nor write.
 */
export async function refusalByLimits(
  { apiKeys }: Pick<Store, 'apiKeys'>,
  userId: string,
  making: Making,
  { maxActiveKeys, creationLimits }: KeyLimits,
  now: Instant,
): Promise<LimitRefusal | null> {
  const waits = creationLimits.map(async window =>
    waitFor(window, await apiKeys.nthLastCreation(userId, window.limit), now),
  )
  const wait = longestOf(await Promise.all(waits))
  if (wait) return { limit: 'creation', wait }
  if (making === 'rotation without overlap') return null
  const room = making === 'rotation' ? maxActiveKeys + 1 : maxActiveKeys
  return (await apiKeys.countActive(userId, now, room)) < room ? null : { limit: 'active' }
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
