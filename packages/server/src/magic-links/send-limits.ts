import type { Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { type Caller, NETWORKS_PER_SITE, siteOf } from '../network.ts'
import { type RateWindow, WINDOW_LENGTHS, type WindowName } from '../rate-windows.ts'
import { type EmailAddress, withoutTag } from '../users/email-address.ts'
import type { MagicLinkStore, SendHistory } from './magic-link-store.ts'

export { WINDOW_LENGTHS, type WindowName } from '../rate-windows.ts'

/** At most `limit` accepted sends in any stretch of time as long as the window. */
export type SendWindow = RateWindow

export interface SendLimits {
  /** Accepted sends per address. */
  limits: readonly SendWindow[]
  /** Accepted sends per client network; null: off. */
  networkLimits: readonly SendWindow[] | null
}

/** A counter of its own: one mailbox, one client network, one mailbox as seen from its owner's browsers. */
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
 * The refusal that the buckets as they are would give, from a read that locks and writes nothing. Null: a send may be
 * accepted, which `countSend` decides.
 */
export async function refusalByRead(
  store: Pick<MagicLinkStore, 'sendHistory'>,
  buckets: readonly SendBucket[],
  now: Instant,
): Promise<Refusal | null> {
  const histories = await Promise.all(
    buckets.map(({ name, windows }) => store.sendHistory(name, limitsOf(windows))),
  )
  // The clock stepped back: only `countSend` may move those sends to now, so that nobody waits longer than a window.
  if (histories.some(({ nthLast }) => [...nthLast.values()].some(at => at !== null && at > now))) return null
  return refusal(buckets, histories, now)
}

/**
 * Sends and counts the send in every bucket, or refuses because one of their windows is full. Only what was accepted
 * counts: who is refused, however often, waits no longer for it.
 *
 * Of any number at once exactly as many pass as there is room for: the buckets stay locked until the transaction ends.
 * Whoever finds a window full before asking for the lock is refused without it.
 * A clock that steps back neither opens nor locks a limit: a send that now lies in the future counts as made now.
 */
export async function countSend(
  store: Pick<
    MagicLinkStore,
    'sendHistory' | 'lockSendBuckets' | 'pullBackSends' | 'sendHistories' | 'recordSend'
  >,
  buckets: readonly SendBucket[],
  now: Instant,
  send: () => Promise<unknown>,
): Promise<Refusal | null> {
  const full = await refusalByRead(store, buckets, now)
  if (full) return full
  const names = namesOf(buckets)
  const locked = await store.lockSendBuckets(names)
  await store.pullBackSends(names, now)
  const limits = new Map(buckets.map(({ name, windows }) => [name, limitsOf(windows)]))
  const refused = refusal(buckets, await store.sendHistories(locked, limits), now)
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

function limitsOf(windows: readonly SendWindow[]): number[] {
  return windows.map(({ limit }) => limit)
}

export function namesOf(buckets: readonly SendBucket[]): string[] {
  return buckets.map(({ name }) => name)
}

export function rateLimited({ retryAfter, window, setting }: Refusal): KeywayError {
  return new KeywayError(
    'rate_limited',
    `Too many sign-in mails were asked for within this ${window}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`,
    { retryAfter, window, setting },
  )
}

/**
 * Where a send counts: for its mailbox and, where networks are limited, for the client's network and, with IPv6, for
 * the /48 around it.
 */
export function bucketsOf(
  { email, isReturning }: { email: EmailAddress; isReturning?: boolean },
  { address, network }: Pick<Caller, 'address' | 'network'>,
  { limits, networkLimits }: SendLimits,
): SendBucket[] {
  const own = isReturning ? returningBucketName(email) : addressBucketName(email)
  const buckets = [{ name: own, windows: limits, setting: 'KEYWAY_MAGIC_LINK_LIMITS' }]
  if (!networkLimits) return buckets
  const setting = 'KEYWAY_MAGIC_LINK_NETWORK_LIMITS'
  buckets.push({ name: `network:${network}`, windows: networkLimits, setting })
  const site = siteOf(address)
  if (site) buckets.push({ name: `network:${site}`, windows: forSite(networkLimits), setting })
  return buckets
}

/** The same windows for the /48 around a network: sixteen times as much. */
export function forSite(windows: readonly SendWindow[]): SendWindow[] {
  return windows.map(({ window, limit }) => ({ window, limit: limit * NETWORKS_PER_SITE }))
}

/** The row that counts the sends to a mailbox, whatever its `+tag`. It is there before there is an account. */
export function addressBucketName(email: EmailAddress): string {
  return `address:${withoutTag(email)}`
}

/**
 * What counts instead for browsers in which someone signed in to this address before: as large, and out of a
 * stranger's reach, who could otherwise lock a person out by using up the mailbox's own sends.
 */
export function returningBucketName(email: EmailAddress): string {
  return `returning:${withoutTag(email)}`
}

/** Every row that counts sends to an address. */
export function bucketNamesOf(email: EmailAddress): string[] {
  return [addressBucketName(email), returningBucketName(email)]
}

/**
 * The rows that go with an account. Those that a tagged address shares stay, until they are pruned: `a+x@` may belong
 * to somebody else than `a@`, whose limits no stranger shall clear.
 */
export function ownBucketNamesOf(email: EmailAddress): string[] {
  return withoutTag(email) === email ? bucketNamesOf(email) : []
}
