import type { Instant } from '../clock.ts'

/** A use of a key from a network; see `alertNetworkOf`. */
export interface NetworkUse {
  lineageId: string
  network: string
  at: Instant
}

/** The kind of alert under which it is remembered that the expiry of a key was announced; its period is the expiry. */
export const EXPIRED = 'expired'

export interface KeyAlertStore {
  /** Keys that expired after `since` and were neither revoked nor announced as expired, soonest first. */
  listExpired(
    since: Instant,
    now: Instant,
    limit: number,
  ): Promise<{ id: string; userId: string; expiresAt: Instant }[]>
  /** True for exactly one of concurrent callers, and the first time only. */
  claim(lineageId: string, kind: string, period: number, at: Instant): Promise<boolean>
  /**
   * Remembers these networks, at most `MAX_KNOWN_NETWORKS` of a key. Returns those that are new to a key which was used
   * from another before; each to exactly one of concurrent callers.
   */
  rememberNetworks<Use extends NetworkUse>(uses: readonly Use[]): Promise<Use[]>
  /** Removes what was claimed or seen before these, at most `batch` of each. Returns how many. */
  prune(claimedBefore: Instant, seenBefore: Instant, batch: number): Promise<number>
}

/**
 * Maximum number of networks stored for a key. Beyond it the key counts as used from anywhere, and its owner is no
 * longer notified.
 */
export const MAX_KNOWN_NETWORKS = 64
