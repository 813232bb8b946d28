import { type Instant, MINUTE, SECOND } from '../clock.ts'
import type { RateLimitState } from '../errors.ts'
import { SlidingCount, type TimedCount } from '../sliding-count.ts'
import type { WindowClaim, WindowGrant } from './lease-state.ts'
import { type RequestLimit, type RequestWindow, WINDOW_MS } from './limit.ts'

/** Number of slots of a window: an entry counts for at most 2.5 % of the window too long. */
const SLOTS = 40
/**
 * The fraction of a limit that a node claims beyond the requests that it has counted in the window and those that wait.
 * In windows of up to a minute it claims the counted requests twice. If the node crashes, no node can use the unused
 * part of its share for one window.
 */
const HEADROOM = 1 / 10
/** A node claims more when it has used this fraction of its share, so that requests need not wait. */
const CLAIM_THRESHOLD = 0.8

/** The limits of a subject: a person, or a key with its successors by rotation. */
export interface SubjectLimits {
  subject: string
  /** The lowest limits of all sources, at most one of each window. */
  windows: readonly RequestLimit[]
}

interface Window {
  per: RequestWindow
  length: number
  limit: number
  claimedLimit: number
  count: SlidingCount
  /** The share of this node: the maximum number of requests that it may let through within the window. */
  held: number
  /** The sum of other nodes' shares, and of requests of nodes that have no share any more. */
  usedByOthers: number
  oldestOfOthers: Instant | null
}

/** The local state of a subject: its counts and shares on this node. */
export class Subject {
  readonly name: string
  /** The `term` in request-limits.ts when the shares were confirmed; -1 if they must be confirmed before use. */
  term = -1
  usedAt: Instant = 0
  /** Before this time, requests for which the shares have no room are refused without a claim. */
  refusedUntil: Instant = 0
  /** Whether the last claim got less than it asked for. */
  isShort = false
  /** The pending change of the shared state. */
  changing: Promise<void> | null = null
  /** Number of requests that wait for a claim. */
  waiting = 0
  #windows: Window[] = []
  #prefix: string

  constructor(name: string) {
    this.name = name
    this.#prefix = name.startsWith(PERSON_PREFIX) ? 'person-' : ''
  }

  /** Sets the current limits. After one was lowered or added, the shares must be claimed again before they are used. */
  setLimits(windows: readonly RequestLimit[]): void {
    const currentWindows = this.#windows
    if (
      currentWindows.length === windows.length &&
      currentWindows.every((each, index) => isSame(each, windows[index]!))
    )
      return
    this.#windows = windows.map(({ per, limit }) => {
      const window = currentWindows.find(each => each.per === per)
      if (window && limit < window.claimedLimit) this.term = -1
      return window ? Object.assign(window, { limit }) : newWindow(per, limit)
    })
    if (windows.some(({ per }) => !currentWindows.some(each => each.per === per))) this.term = -1
  }

  addWaiting(count: number, now: Instant): void {
    this.waiting += count
    this.usedAt = now
  }

  fits(count: number, now: Instant): boolean {
    for (const window of this.#windows) if (window.count.total(now) + count > window.held) return false
    return true
  }

  /** Whether `count` requests would fit if this node were the only one. */
  fitsAlone(count: number, now: Instant): boolean {
    return this.#windows.every(window => window.count.total(now) + count <= window.limit)
  }

  /** Whether this node holds the whole limit of a full window, so that no other node has a share of it to release. */
  holdsFullWindow(count: number, now: Instant): boolean {
    return this.#windows.some(
      window => window.held >= window.limit && window.count.total(now) + count > window.limit,
    )
  }

  add(count: number, now: Instant): void {
    this.usedAt = now
    for (const window of this.#windows) window.count.add(now, count)
  }

  isRunningOut(now: Instant): boolean {
    return this.#windows.some(
      ({ count, held, limit }) => held < limit && count.total(now) > held * CLAIM_THRESHOLD,
    )
  }

  /** Whether this node let through fewer requests than its share of some window, so that the share can be lowered. */
  hasSlack(now: Instant): boolean {
    return this.#windows.some(({ count, held }) => held > count.total(now))
  }

  claims(how: 'claim' | 'lower', now: Instant): WindowClaim[] {
    return this.#windows.map(({ per, limit, length, count }) => {
      const usedCount = count.total(now)
      const extraCount =
        how === 'lower' ? 0 : this.waiting + Math.ceil(limit * HEADROOM) + (length <= MINUTE ? usedCount : 0)
      return { per, limit, counted: count.history(now), wanted: Math.min(limit, usedCount + extraCount) }
    })
  }

  history(now: Instant): Partial<Record<RequestWindow, TimedCount[]>> {
    return Object.fromEntries(this.#windows.map(({ per, count }) => [per, count.history(now)]))
  }

  isChangedBy(grants: readonly WindowGrant[]): boolean {
    return this.#windows.some(({ per, held }) => grants.find(grant => grant.per === per)?.held !== held)
  }

  /**
   * Sets the shares to the granted ones. They may be used, unless a limit was lowered or added since the claim.
   * @param how `lower`: shares are never raised
   * @param term the shares may be used while the `term` in request-limits.ts has this value
   */
  applyGrants(grants: readonly WindowGrant[], how: 'lower' | 'raise', term = this.term): void {
    let isConfirmed = true
    for (const window of this.#windows) {
      const grant = grants.find(({ per }) => per === window.per)
      if (!grant || window.limit < grant.limit) isConfirmed = false
      if (!grant) continue
      window.held = how === 'lower' ? Math.min(window.held, grant.held) : grant.held
      window.usedByOthers = grant.usedByOthers
      window.oldestOfOthers = grant.oldestOfOthers
      window.claimedLimit = grant.limit
    }
    this.term = isConfirmed ? term : -1
  }

  dropShares(): void {
    this.term = -1
    for (const window of this.#windows) window.held = 0
  }

  resetCounts(): void {
    this.dropShares()
    for (const window of this.#windows) window.count = new SlidingCount(window.length, SLOTS)
  }

  states(now: Instant): RateLimitState[] {
    return this.#windows.map(window => ({
      name: this.#prefix + window.per,
      limit: window.limit,
      windowSeconds: window.length / SECOND,
      remaining: Math.max(0, window.limit - window.usedByOthers - window.count.total(now)),
      resetSeconds: secondsUntilRoom(window, now),
    }))
  }

  /**
   * The wait for each window without room for `count` more requests; for every window if all of them have room, so that
   * a refusal always has a wait.
   */
  waits(count: number, now: Instant): { per: RequestWindow; limit: number; retryAfter: number }[] {
    const fullWindows = this.#windows.filter(window => window.count.total(now) + count > window.held)
    const awaitedWindows = fullWindows.length > 0 ? fullWindows : this.#windows
    return awaitedWindows.map(window => ({
      per: window.per,
      limit: window.limit,
      retryAfter: secondsUntilRoom(window, now),
    }))
  }
}

export const PERSON_PREFIX = 'person:'

function isSame(window: Window, { per, limit }: RequestLimit): boolean {
  return window.per === per && window.limit === limit
}

function newWindow(per: RequestWindow, limit: number): Window {
  const length = WINDOW_MS[per]
  const count = new SlidingCount(length, SLOTS)
  return { per, length, limit, claimedLimit: limit, count, held: 0, usedByOthers: 0, oldestOfOthers: null }
}

function secondsUntilRoom({ count, length, oldestOfOthers }: Window, now: Instant): number {
  const instants = [count.oldest(now), oldestOfOthers].filter(
    at => at !== null && at > now - length,
  ) as Instant[]
  // After the clock stepped back, what was counted in the future counts as counted now.
  const oldest = instants.length > 0 ? Math.min(now, ...instants) : now
  return Math.max(1, Math.ceil((oldest + length - now) / SECOND))
}
