import type { Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { type Caller, NETWORKS_PER_SITE, siteOf } from '../network.ts'
import { type RateWindow, WINDOW_LENGTHS, type WindowName } from '../rate-windows.ts'
import { type EmailAddress, withoutTag } from '../users/email-address.ts'
import type { MagicLinkStore, SendHistory } from './magic-link-store.ts'

export { WINDOW_LENGTHS, type WindowName } from '../rate-windows.ts'

export type SendWindow = RateWindow

export interface SendLimits {
  /** Limits of accepted sends to one mailbox: to an address and all that differ from it by a `+tag`. */
  limits: readonly SendWindow[]
  /** Limits of accepted sends per client network; null if there are none. */
  networkLimits: readonly SendWindow[] | null
}

/**
 * Sends that are counted together: to a mailbox, to a mailbox from recognised browsers, by a client network, or to
 * confirm changes of an account.
 */
export interface SendBucket {
  /** Begins with `address:`, `returning:` (from recognised browsers), `network:` or `account:`. */
  name: string
  windows: readonly SendWindow[]
  /** The setting that configures the windows, if one does. */
  setting?: string
}

/** The n of the last send among the n-th last ones. */
const LAST = 1

/** Why a send is refused: the full window with the longest wait. */
export interface Refusal {
  /** Whole seconds, rounded up, at least 1; after them the send is accepted. */
  retryAfter: number
  window: WindowName
  setting?: string | undefined
}

/**
 * Checks the limits with a read, without locks or writes. Null if the send may be accepted, which `sendWithinLimits`
 * decides.
 */
export async function refusalByRead(
  store: Pick<MagicLinkStore, 'sendHistory'>,
  buckets: readonly SendBucket[],
  now: Instant,
): Promise<Refusal | null> {
  const histories = await Promise.all(
    buckets.map(({ name, windows }) => store.sendHistory(name, [LAST, ...limitsOf(windows)])),
  )
  // If the clock of the database or of the system was stepped back, sends may have a time in the future, and the last one
  // has the latest. Only `sendWithinLimits` corrects these times; until then they would count longer than their windows.
  if (histories.some(({ nthLast }) => (nthLast.get(LAST) ?? now) > now)) return null
  return refusal(buckets, histories, now)
}

/** Calls `send` and counts the mail in every bucket, or returns the refusal if a window is full. */
export async function sendWithinLimits(
  store: Pick<
    MagicLinkStore,
    'sendHistory' | 'lockSendBuckets' | 'clampFutureSends' | 'sendHistories' | 'recordSend'
  >,
  buckets: readonly SendBucket[],
  now: Instant,
  send: () => Promise<unknown>,
): Promise<Refusal | null> {
  const earlyRefusal = await refusalByRead(store, buckets, now)
  if (earlyRefusal) return earlyRefusal
  const names = namesOf(buckets)
  const lastSendNumbers = await store.lockSendBuckets(names)
  await store.clampFutureSends(names, now)
  const limits = new Map(buckets.map(({ name, windows }) => [name, limitsOf(windows)]))
  const refusalUnderLock = refusal(buckets, await store.sendHistories(lastSendNumbers, limits), now)
  if (refusalUnderLock) return refusalUnderLock
  await Promise.all([store.recordSend(names, now), send()])
  return null
}

/**
 * The refusal if one more send at `now` would exceed any window of any bucket, or null.
 *
 * Windows slide: a send at t counts until just before t + window. A window is full when the `limit`-th last send
 * still counts.
 */
function refusal(
  buckets: readonly SendBucket[],
  histories: readonly SendHistory[],
  now: Instant,
): Refusal | null {
  const fullWindows = buckets.flatMap(bucket => {
    const history = histories.find(({ bucket: name }) => name === bucket.name)
    return bucket.windows.flatMap(({ window, limit }) => {
      const nthLast = history?.nthLast.get(limit) ?? null
      const wait = nthLast === null ? 0 : nthLast + WINDOW_LENGTHS[window] - now
      return wait > 0 ? [{ wait, window, setting: bucket.setting }] : []
    })
  })
  const longestWait = fullWindows.sort((a, b) => b.wait - a.wait)[0]
  if (!longestWait) return null
  const { wait, window, setting } = longestWait
  return { retryAfter: Math.ceil(wait / 1000), window, setting }
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
 * The buckets in which a send counts: that of its mailbox, or the mailbox's other one for a browser with an earlier
 * sign-in (`returningBucketName`); and, where networks are limited, those of the client's network and, for IPv6, of its
 * /48.
 */
export function bucketsOf(
  { email, isReturning }: { email: EmailAddress; isReturning?: boolean },
  { address, network }: Pick<Caller, 'address' | 'network'>,
  { limits, networkLimits }: SendLimits,
): SendBucket[] {
  const bucketName = isReturning ? returningBucketName(email) : addressBucketName(email)
  const buckets = [{ name: bucketName, windows: limits, setting: 'KEYWAY_MAGIC_LINK_LIMITS' }]
  if (!networkLimits) return buckets
  const setting = 'KEYWAY_MAGIC_LINK_NETWORK_LIMITS'
  buckets.push({ name: `network:${network}`, windows: networkLimits, setting })
  const site = siteOf(address)
  if (site) buckets.push({ name: `network:${site}`, windows: siteWindows(networkLimits), setting })
  return buckets
}

/** The windows of an IPv6 /48: sixteen times the limits of a network. */
export function siteWindows(windows: readonly SendWindow[]): SendWindow[] {
  return windows.map(({ window, limit }) => ({ window, limit: limit * NETWORKS_PER_SITE }))
}

/**
 * Name of the bucket that counts the sends to a mailbox, whatever the `+tag`. Its row exists before the account does,
 * so sign-ins to an address lock it too (`lockAddress` in verify.ts).
 */
export function addressBucketName(email: EmailAddress): string {
  return `address:${withoutTag(email)}`
}

/**
 * Name of the bucket that counts the sends asked for by browsers with an earlier sign-in to this address, which do not
 * count in the bucket `addressBucketName`. Both have the same limits. Strangers can exhaust only the latter, so they
 * cannot lock out a person who uses such a browser.
 */
export function returningBucketName(email: EmailAddress): string {
  return `returning:${withoutTag(email)}`
}

/** The names of the two buckets that count the sign-in mails to the mailbox of an address. */
export function bucketNamesOf(email: EmailAddress): [address: string, returning: string] {
  return [addressBucketName(email), returningBucketName(email)]
}

export function addressBucketsOf(
  email: EmailAddress,
  windows: readonly SendWindow[],
): [address: SendBucket, returning: SendBucket] {
  const [address, returning] = bucketNamesOf(email)
  return [
    { name: address, windows },
    { name: returning, windows },
  ]
}

/**
 * The names of the buckets that are deleted with an account. Buckets that a tagged address shares with others stay
 * until they are pruned: `a+x@` may belong to someone else than `a@`, and must not reset the limits of `a@`.
 */
export function ownBucketNamesOf(email: EmailAddress): string[] {
  return withoutTag(email) === email ? bucketNamesOf(email) : []
}
