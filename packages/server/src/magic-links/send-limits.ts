import { DAY, HOUR, type Instant, MINUTE } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { MagicLinkStore, SendHistory } from './magic-link-store.ts'

export type WindowName = 'minute' | 'hour' | 'day'

export const WINDOW_LENGTHS: Record<WindowName, number> = { minute: MINUTE, hour: HOUR, day: DAY }

/** At most `limit` accepted sends in any stretch of time as long as the window. */
export interface SendWindow {
  window: WindowName
  limit: number
}

export interface SendLimits {
  /** Accepted sends per address. */
  limits: readonly SendWindow[]
  /** Accepted sends per client network; null: off. */
  networkLimits: readonly SendWindow[] | null
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

/**
 * Sends and counts the send in every bucket, or refuses because one of their windows is full. Only what was accepted
 * counts: who is refused, however often, waits no longer for it.
 *
 * Of any number at once exactly as many pass as there is room for: the buckets stay locked until the transaction ends.
 * A clock that steps back neither opens nor locks a limit: a send that now lies in the future counts as made now.
 */
export async function countSend(
  store: Pick<MagicLinkStore, 'lockSendBuckets' | 'pullBackSends' | 'sendHistories' | 'recordSend'>,
  buckets: readonly SendBucket[],
  now: Instant,
  send: () => Promise<unknown>,
): Promise<Refusal | null> {
  const names = buckets.map(({ name }) => name)
  const locked = await store.lockSendBuckets(names)
  await store.pullBackSends(names, now)
  const refused = refusal(buckets, await store.sendHistories(locked, limitsOf(buckets)), now)
  if (refused) return refused
  // Independent of each other, so they are under way together.
  await Promise.all([store.recordSend(names, now), send()])
  return null
}

/**
 * Whether one more send at `now` is too many for any window of any bucket.
 *
 * Windows slide: a send at t counts until just before t + window, so at exactly t + window its place is free
 * again. A window is full when the send that lies `limit` sends back still counts.
 */
function refusal(
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

function limitsOf(buckets: readonly SendBucket[]): Map<string, number[]> {
  return new Map(buckets.map(({ name, windows }) => [name, windows.map(({ limit }) => limit)]))
}

export function rateLimited({ retryAfter, window, setting }: Refusal): KeywayError {
  return new KeywayError(
    'rate_limited',
    `Too many sign-in mails were asked for within this ${window}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`,
    { retryAfter, window, setting },
  )
}

/**
 * Where a send counts: for its address and, where that is limited, for its client's network.
 *
 * @param network what `networkOf` made of the client's address
 */
export function bucketsOf(
  { email, isReturning }: { email: EmailAddress; isReturning?: boolean },
  network: string,
  { limits, networkLimits }: SendLimits,
): SendBucket[] {
  const own = isReturning ? returningBucketName(email) : addressBucketName(email)
  const buckets = [{ name: own, windows: limits, setting: 'KEYWAY_MAGIC_LINK_LIMITS' }]
  if (!networkLimits) return buckets
  const setting = 'KEYWAY_MAGIC_LINK_NETWORK_LIMITS'
  return [...buckets, { name: `network:${network}`, windows: networkLimits, setting }]
}

/** The row that counts an address's sends. It is there before the address has an account. */
export function addressBucketName(email: EmailAddress): string {
  return `address:${email}`
}

/**
 * What counts instead for browsers in which someone signed in to this address before: as large, and out of a
 * stranger's reach, who could otherwise lock a person out by using up the address's own sends.
 */
export function returningBucketName(email: EmailAddress): string {
  return `returning:${email}`
}

/** Every row that counts sends to an address. */
export function bucketNamesOf(email: EmailAddress): string[] {
  return [addressBucketName(email), returningBucketName(email)]
}
