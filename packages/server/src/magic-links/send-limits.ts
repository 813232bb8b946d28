import { DAY, HOUR, type Instant, MINUTE } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { SendHistory } from './magic-link-store.ts'

export type WindowName = 'minute' | 'hour' | 'day'

export const WINDOW_LENGTHS: Record<WindowName, number> = { minute: MINUTE, hour: HOUR, day: DAY }

/** At most `limit` accepted sends in any stretch of time as long as the window. */
export interface SendWindow {
  window: WindowName
  limit: number
}

/** A counter of its own: one address, one client network, one returning browser. */
export interface SendBucket {
  /** `address:…`, `returning:…` or `network:…` */
  name: string
  windows: readonly SendWindow[]
  /** The setting that an operator would change. */
  setting: string
}

/** That a send is refused, by the window that takes longest to have room again. */
export interface Refusal {
  /** Whole seconds, rounded up, at least 1: who waits them is let through. */
  retryAfter: number
  window: WindowName
  setting: string
}

export function addressBucket(email: EmailAddress, windows: readonly SendWindow[]): SendBucket {
  return { name: addressBucketName(email), windows, setting: 'KEYWAY_MAGIC_LINK_LIMITS' }
}

/** The row that counts an address's sends. It is there before the address has an account. */
export function addressBucketName(email: EmailAddress): string {
  return `address:${email}`
}

/**
 * What counts instead for browsers in which someone signed in to this address before: as large, and out of a
 * stranger's reach, who could otherwise lock a person out by using up the address's own sends.
 */
export function returningBucket(email: EmailAddress, windows: readonly SendWindow[]): SendBucket {
  return { name: `returning:${email}`, windows, setting: 'KEYWAY_MAGIC_LINK_LIMITS' }
}

/** Every row that counts sends to an address. */
export function bucketNamesOf(email: EmailAddress): string[] {
  return [addressBucketName(email), returningBucket(email, []).name]
}

/** @param network what `networkOf` made of the client's address */
export function networkBucket(network: string, windows: readonly SendWindow[]): SendBucket {
  return { name: `network:${network}`, windows, setting: 'KEYWAY_MAGIC_LINK_NETWORK_LIMITS' }
}

/**
 * Whether one more send at `now` is too many for any window of any bucket.
 *
 * Windows slide: a send at t counts until just before t + window, so at exactly t + window its place is free
 * again. A window is full when the send that lies `limit` sends back still counts.
 */
export function refusal(
  buckets: readonly SendBucket[],
  histories: readonly SendHistory[],
  now: Instant,
): Refusal | null {
  const full = buckets.flatMap(bucket => {
    const history = histories.find(({ bucket: name }) => name === bucket.name)
    return bucket.windows.flatMap(({ window, limit }) => {
      const oldest = history?.nthLast.get(limit) ?? null
      const wait = oldest === null ? 0 : oldest + WINDOW_LENGTHS[window] - now
      return wait > 0 ? [{ wait, window, setting: bucket.setting }] : []
    })
  })
  const longest = full.sort((a, b) => b.wait - a.wait)[0]
  if (!longest) return null
  return { retryAfter: Math.ceil(longest.wait / 1000), window: longest.window, setting: longest.setting }
}
