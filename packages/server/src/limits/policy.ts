import { invalidRequest } from '../errors.ts'
import { NO_LIMITS, type RequestLimit, type WantedLimits } from './limit.ts'

/** The operator's limits, which apply to all keys and persons. */
export interface LimitPolicy {
  /** Limits of every key; its own limits must not be higher. */
  keyLimits: readonly RequestLimit[]
  /** Limits of new keys that are created without request limits. */
  keyDefaults: readonly RequestLimit[]
  /** Limits over all keys of one person. */
  personLimits: readonly RequestLimit[]
}

/** Returns the current policy. Must be cheap, since every exchange calls it. */
export type PolicySource = () => LimitPolicy

/** The limits of a new key, with the policy's default request limits if none are requested. */
export function withDefaults(wanted: WantedLimits = NO_LIMITS, { keyDefaults }: LimitPolicy): WantedLimits {
  return wanted.requests.length === 0 && keyDefaults.length > 0
    ? { ...wanted, requests: keyDefaults }
    : wanted
}

/** @throws KeywayError `invalid_request` for a limit beyond the policy, which could never be used */
export function assertWithinPolicy({ requests }: WantedLimits, { keyLimits }: LimitPolicy): void {
  for (const { per, limit } of keyLimits)
    if (requests.some(each => each.per === per && each.limit > limit))
      throw invalidRequest([
        {
          field: 'limits.requests',
          message: `must be at most ${limit} per ${per} by the policy key_limits, for example {"limit": ${limit}, "per": "${per}"}`,
        },
      ])
}
