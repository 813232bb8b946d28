import { type Instant, MINUTE, SECOND } from '../clock.ts'
import type { RateLimitState } from '../errors.ts'
import { type CountedAt, SlidingCount } from '../sliding-count.ts'
import type { WindowClaim, WindowGrant } from './lease-state.ts'
import { type RequestLimit, type RequestWindow, WINDOW_MS } from './limit.ts'

/** Slots of a window: an entry counts for 2.5 % of the window too long at most. */
const SLOTS = 40
/** How much more than it uses a node claims, as a part of the limit: what a crash takes from a window at most. */
const HEADROOM = 1 / 10
/** From this part of what it holds on a node claims more, before it has to wait for it. */
const CLAIM_FROM = 0.8

/** What a subject may do: a lineage of keys, or a person. */
export interface Demand {
  subject: string
  /** The strictest of all sources, at most one of each window. */
  windows: readonly RequestLimit[]
}

interface Window {
  per: RequestWindow
  length: number
  limit: number
  /** The limit with which it was last claimed. */
  claimedFor: number
  count: SlidingCount
  /** What may be counted at most. */
  held: number
  others: number
  oldestOfOthers: Instant | null
}

/** What this node knows of a subject: what it has let through, and how much it may. */
export class Subject {
  readonly name: string
  /** In which term of the node's lease what it holds was confirmed. */
  term = -1
  usedAt: Instant = 0
  /** Until then no more can be had. */
  refusedUntil: Instant = 0
  /** A change of the shared state that is under way. */
  changing: Promise<void> | null = null
  /** Requests that wait for a claim. */
  waiting = 0
  #windows: Window[] = []
  #prefix: string

  constructor(name: string) {
    this.name = name
    this.#prefix = name.startsWith(PERSON) ? 'person-' : ''
  }

  /** Takes over the limits as they are now. One that was lowered must be claimed again. */
  demand(windows: readonly RequestLimit[]): void {
    const known = this.#windows
    if (known.length === windows.length && known.every((each, index) => isSame(each, windows[index]!))) return
    this.#windows = windows.map(({ per, limit }) => {
      const before = known.find(each => each.per === per)
      if (before && limit < before.claimedFor) this.term = -1
      return before ? Object.assign(before, { limit }) : newWindow(per, limit)
    })
    if (windows.some(({ per }) => !known.some(each => each.per === per))) this.term = -1
  }

  wait(count: number, now: Instant): void {
    this.waiting += count
    this.usedAt = now
  }

  fits(count: number, now: Instant): boolean {
    for (const window of this.#windows) if (window.count.total(now) + count > window.held) return false
    return true
  }

  /** As if this node were the only one. */
  fitsAlone(count: number, now: Instant): boolean {
    return this.#windows.every(window => window.count.total(now) + count <= window.limit)
  }

  /** Whether what is full is held whole, so that nobody else can give up any of it. */
  holdsAll(count: number, now: Instant): boolean {
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
      ({ count, held, limit }) => held < limit && count.total(now) > held * CLAIM_FROM,
    )
  }

  /** Holds noticeably more than it uses. */
  hasSlack(now: Instant): boolean {
    return this.#windows.some(({ count, held }) => held > count.total(now))
  }

  claims(how: 'claim' | 'lower', now: Instant): WindowClaim[] {
    return this.#windows.map(({ per, limit, length, count }) => {
      const used = count.total(now)
      const more =
        how === 'lower' ? 0 : this.waiting + Math.ceil(limit * HEADROOM) + (length <= MINUTE ? used : 0)
      return { per, limit, counted: count.history(now), wanted: Math.min(limit, used + more) }
    })
  }

  counted(now: Instant): Partial<Record<RequestWindow, CountedAt[]>> {
    return Object.fromEntries(this.#windows.map(({ per, count }) => [per, count.history(now)]))
  }

  isChangedBy(grants: readonly WindowGrant[]): boolean {
    return this.#windows.some(({ per, held }) => grants.find(grant => grant.per === per)?.held !== held)
  }

  /**
   * @param how `lower`: only where less is granted than is held
   * @param term of the lease; what is held is confirmed by it unless the limits were changed meanwhile
   */
  hold(grants: readonly WindowGrant[], how: 'lower' | 'raise', term = this.term): void {
    let isWhole = true
    for (const window of this.#windows) {
      const grant = grants.find(({ per }) => per === window.per)
      if (!grant || window.limit < grant.limit) isWhole = false
      if (!grant) continue
      window.held = how === 'lower' ? Math.min(window.held, grant.held) : grant.held
      window.others = grant.others
      window.oldestOfOthers = grant.oldestOfOthers
      window.claimedFor = grant.limit
    }
    this.term = isWhole ? term : -1
  }

  holdNothing(): void {
    this.term = -1
    for (const window of this.#windows) window.held = 0
  }

  forget(): void {
    this.holdNothing()
    for (const window of this.#windows) window.count = new SlidingCount(window.length, SLOTS)
  }

  states(now: Instant): RateLimitState[] {
    return this.#windows.map(window => ({
      name: this.#prefix + window.per,
      limit: window.limit,
      windowSeconds: window.length / SECOND,
      remaining: Math.max(0, window.limit - window.others - window.count.total(now)),
      resetSeconds: secondsUntilRoom(window, now),
    }))
  }

  /** How long the windows that are too full stay so. */
  waits(count: number, now: Instant): { per: RequestWindow; limit: number; retryAfter: number }[] {
    const full = this.#windows.filter(window => window.count.total(now) + count > window.held)
    const named = full.length > 0 ? full : this.#windows
    return named.map(window => ({
      per: window.per,
      limit: window.limit,
      retryAfter: secondsUntilRoom(window, now),
    }))
  }
}

/** How the names of persons begin among subjects. */
export const PERSON = 'person:'

function isSame(window: Window, { per, limit }: RequestLimit): boolean {
  return window.per === per && window.limit === limit
}

function newWindow(per: RequestWindow, limit: number): Window {
  const length = WINDOW_MS[per]
  const count = new SlidingCount(length, SLOTS)
  return { per, length, limit, claimedFor: limit, count, held: 0, others: 0, oldestOfOthers: null }
}

function secondsUntilRoom({ count, length, oldestOfOthers }: Window, now: Instant): number {
  const counted = [count.oldest(now), oldestOfOthers].filter(
    at => at !== null && at > now - length,
  ) as Instant[]
  // After the clock stepped back, what was counted in the future counts as counted now.
  const oldest = counted.length > 0 ? Math.min(now, ...counted) : now
  return Math.max(1, Math.ceil((oldest + length - now) / SECOND))
}
