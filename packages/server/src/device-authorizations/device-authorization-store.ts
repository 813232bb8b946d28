import type { Instant } from '../clock.ts'
import type { DeviceAuthorization, DeviceDecision } from './device-authorization.ts'

export interface DeviceAuthorizationStore {
  /** False if one of its codes is taken. */
  insert(authorization: DeviceAuthorization): Promise<boolean>
  find(id: string): Promise<DeviceAuthorization | null>
  findByDeviceCode(hash: string): Promise<DeviceAuthorization | null>
  findByTicket(hash: string): Promise<DeviceAuthorization | null>
  /** One that is undecided and not expired. `hashes`: those of one code under all secrets. */
  findPendingByUserCode(hashes: readonly string[], now: Instant): Promise<DeviceAuthorization | null>
  /**
   * Records a poll. False if it came before the interval had passed since the last one, for all but one of concurrent
   * polls; then the interval becomes `step` longer, unless it is `longest` or more already: then nothing is written.
   */
  recordPoll(id: string, now: Instant, step: number, longest: number): Promise<boolean>
  /** Null for all but the first decision, and when it has expired. */
  decide(
    id: string,
    decision: DeviceDecision,
    by: { userId: string; signInId: string; authTime: Instant; at: Instant },
  ): Promise<DeviceAuthorization | null>
  /** Null for all but one of any number of callers, and unless it is approved and not expired. */
  redeem(id: string, sessionId: string, at: Instant): Promise<DeviceAuthorization | null>
  /** The redeemed authorization that opened the session. */
  findBySession(sessionId: string): Promise<DeviceAuthorization | null>
  /** Null for all but the first key, and unless it was redeemed after `redeemedAfter`. */
  claimKey(sessionId: string, keyId: string, redeemedAfter: Instant): Promise<DeviceAuthorization | null>
  /** Deletes those that expired before this, at most `batch`. Returns how many. */
  prune(expiredBefore: Instant, batch: number): Promise<number>
}
