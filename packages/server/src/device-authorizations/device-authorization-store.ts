import type { Instant } from '../clock.ts'
import type { DeviceAuthorization, DeviceDecision } from './device-authorization.ts'

export interface DeviceAuthorizationStore {
  /** False if one of its codes is in use already. */
  insert(authorization: DeviceAuthorization): Promise<boolean>
  find(id: string): Promise<DeviceAuthorization | null>
  findByDeviceCode(hash: string): Promise<DeviceAuthorization | null>
  findByTicket(hash: string): Promise<DeviceAuthorization | null>
  /** The undecided, unexpired authorization with this user code. @param hashes of the code, under every secret */
  findPendingByUserCode(hashes: readonly string[], now: Instant): Promise<DeviceAuthorization | null>
  /**
   * Records a poll. Returns false if it came too early: before the interval since the last poll had passed. Of
   * concurrent polls, all but one come too early. Such a poll lengthens the interval by `step`, unless it has reached
   * `longest`.
   */
  recordPoll(id: string, now: Instant, step: number, longest: number): Promise<boolean>
  /** Records the decision. Null if the authorization is unknown, was decided before, or has expired. */
  decide(
    id: string,
    decision: DeviceDecision,
    by: { userId: string; signInId: string; authTime: Instant; at: Instant },
  ): Promise<DeviceAuthorization | null>
  /**
   * Marks an authorization as redeemed if it is approved and not expired. Exactly one caller gets it; all others get
   * null.
   */
  redeem(id: string, sessionId: string, at: Instant): Promise<DeviceAuthorization | null>
  /** The redeemed authorization that opened the session; null if none did. */
  findBySession(sessionId: string): Promise<DeviceAuthorization | null>
  /**
   * Records the one key of a session that a redemption opened. Null if the session has a key already, or no redemption
   * after `redeemedAfter` opened it.
   */
  claimKey(sessionId: string, keyId: string, redeemedAfter: Instant): Promise<DeviceAuthorization | null>
  /** Deletes authorizations that expired before this instant, at most `batch`. Returns how many. */
  prune(expiredBefore: Instant, batch: number): Promise<number>
}
