import type { Instant } from '../clock.ts'
import type { DeviceAuthorization, DeviceDecision } from './device-authorization.ts'

export interface DeviceAuthorizationStore {
  /** False if one of its codes is in use already. */
  insert(authorization: DeviceAuthorization): Promise<boolean>
  find(id: string): Promise<DeviceAuthorization | null>
  findByDeviceCode(hash: string): Promise<DeviceAuthorization | null>
  findByTicket(hash: string): Promise<DeviceAuthorization | null>
  /** An authorization that is undecided and not expired. `hashes`: the hashes of one code under all secrets. */
  findPendingByUserCode(hashes: readonly string[], now: Instant): Promise<DeviceAuthorization | null>
  /**
   * Records a poll. False if it came before the interval since the last poll had passed, which is so for all but one of
   * concurrent polls. Such a poll lengthens the interval by `step`, or writes nothing once that has reached `longest`.
   */
  recordPoll(id: string, now: Instant, step: number, longest: number): Promise<boolean>
  /** Records the decision. Null if it was decided before, or has expired. */
  decide(
    id: string,
    decision: DeviceDecision,
    by: { userId: string; signInId: string; authTime: Instant; at: Instant },
  ): Promise<DeviceAuthorization | null>
  /**
   * Marks an approved authorization as redeemed. Null for all but one of any number of callers, and unless it is
   * approved and not expired.
   */
  redeem(id: string, sessionId: string, at: Instant): Promise<DeviceAuthorization | null>
  /** The redeemed authorization that opened the session. */
  findBySession(sessionId: string): Promise<DeviceAuthorization | null>
  /** Records the one key of a session. Null if it has one already, or was not redeemed after `redeemedAfter`. */
  claimKey(sessionId: string, keyId: string, redeemedAfter: Instant): Promise<DeviceAuthorization | null>
  /** Deletes authorizations that expired before this instant, at most `batch`. Returns how many. */
  prune(expiredBefore: Instant, batch: number): Promise<number>
}
