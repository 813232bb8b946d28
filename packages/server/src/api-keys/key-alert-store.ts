import type { Instant } from '../clock.ts'

/** A use of a key. `network` is the IPv4 /24 or IPv6 /48 that contains the address (`alertNetworkOf`). */
export interface NetworkUse {
  lineageId: string
  network: string
  at: Instant
}

/** The `kind` under which `claim` records that a key's expiry was announced; its `period` is the time of the expiry. */
export const EXPIRED = 'expired'

export interface KeyAlertStore {
  /** Keys that expired after `since` and were neither revoked nor announced as expired, the earliest expiry first. */
  listExpired(
    since: Instant,
    now: Instant,
    limit: number,
  ): Promise<{ id: string; userId: string; expiresAt: Instant }[]>
  /**
   * Claims an alert, so that it is sent once: true for exactly one of concurrent callers, and for the first call only.
   */
  claim(lineageId: string, kind: string, period: number, at: Instant): Promise<boolean>
  /**
   * Stores the networks that keys were used from, at most `MAX_KNOWN_NETWORKS` per key. Returns the uses from a network
   * that was stored as a new one, except those from a key's first network. Of concurrent callers, each new network is
   * returned to one.
   */
  rememberNetworks<Use extends NetworkUse>(uses: readonly Use[]): Promise<Use[]>
  /**
   * Removes claims of alerts from before `claimedBefore`, and networks from which no use of the key was stored since
   * `seenBefore`: at most `batch` of each. Returns the larger of the two numbers; `batch` means that more may be left.
   */
  prune(claimedBefore: Instant, seenBefore: Instant, batch: number): Promise<number>
}

/**
 * Maximum number of networks stored for a key. Beyond it the key counts as used from anywhere, and its owner is no
 * longer notified.
 */
export const MAX_KNOWN_NETWORKS = 64
