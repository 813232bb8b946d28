import { invalidRequest } from '../errors.ts'
import { NO_LIMITS, type RequestLimit, type WantedLimits } from './limit.ts'

/** What the operator allows, whatever owners set. */
export interface LimitPolicy {
  /** Of every key; a key may have lower limits, never higher ones. */
  keyLimits: readonly RequestLimit[]
  /** Of new keys that are made without limits of requests. */
  keyDefaults: readonly RequestLimit[]
  /** Over all keys of one person. */
  personLimits: readonly RequestLimit[]
}

/** The policy in force, asked for at every use. Must cost nothing: it is on the path of every exchange. */
export type PolicySource = () => LimitPolicy

/** The limits of a new key: where none of requests are asked for, those that the policy gives. */
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
