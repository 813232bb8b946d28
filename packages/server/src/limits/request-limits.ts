import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import { KeywayError, type RateLimitState, unavailable } from '../errors.ts'
import { newId } from '../ids.ts'
import {
  claim,
  EMPTY_STATE,
  HOLDER_MARGIN,
  isHolder,
  obsoleteFrom,
  release,
  type SharedState,
  withoutDeadHolders,
} from './lease-state.ts'
import type { LeaseRow, LeaseStore } from './lease-store.ts'
import type { WhenCutOff } from './limit.ts'
import { type Demand, Subject } from './subject.ts'

/** How long a node may use its shares without reaching the database. A dead node is detected after this time. */
const HOLDER_LEASE = 15 * SECOND
/** The lease is renewed when less than this is left. */
const RENEWED_BELOW = 10 * SECOND
/** Interval of `sweep`. */
export const SWEEP_INTERVAL = 5 * SECOND
/** A subject without requests is released after this time, far more than the interval of an agent's exchanges. */
const IDLE_AFTER = 20 * MINUTE
/** Maximum number of subjects in memory, each with at most 8 windows of 1 KB. Beyond it the oldest are released. */
export const MAX_SUBJECTS = 50_000
/** How long a node does not repeat a claim that was not granted entirely. */
const RETRY_AFTER_REFUSAL_MS = 250
/** Minimum interval at which a claim for more than is available is recorded, so that other nodes lower their shares. */
const OPEN_CLAIM_INTERVAL = 2 * SECOND
/** Maximum number of subjects with such claims that one sweep considers. */
const MAX_OPEN_CLAIMS = 1000
/** Pause of claims after a database failure. */
const CUT_OFF_FOR = SECOND
/** Maximum attempts of a claim that other nodes overtake. */
const MAX_ATTEMPTS = 10
/** Maximum number of subjects that are changed concurrently. */
const SWEPT_AT_ONCE = 10

/** Other nodes changed the row of a limit in each attempt. */
class Overtaken extends Error {
  override readonly name = 'Overtaken'
  override readonly message = 'claims of a limit were overtaken too often'
}

export interface RequestLimits {
  /**
   * Counts requests in all demands, or in none if one has no room. Synchronous if this node holds enough, which is
   * almost always.
   * @returns the state of the windows after these requests
   * @throws KeywayError `rate_limited`; `unavailable` if this node is cut off from the database and must not go on
   */
  take(demands: readonly Demand[], count: number): RateLimitState[] | Promise<RateLimitState[]>
  /** The current state of the windows; reads from the database what this node does not know. */
  peek(demands: readonly Demand[]): Promise<RateLimitState[]>
  /** Periodic: renews the lease, and releases shares that other nodes claim or that are idle. */
  sweep(): Promise<void>
  /** At shutdown: releases all shares, so that other nodes know the counts at once. */
  releaseAll(): Promise<void>
  /** Number of subjects in memory. */
  readonly size: number
}

/**
 * Limits over all nodes without a write per request. A node holds a share of each limit, and lets requests through up
 * to it without the database (subject.ts). The shares are kept in one row per subject (lease-state.ts), replaced by one
 * conditional update: when the node needs more, when another node wants what it does not use, and at shutdown. Shares
 * never add up to more than the limit; that of a dead node counts as used at the end of its lease. Decision 6.
 */
export function createRequestLimits({
  clock,
  store,
  whenCutOff,
  maxSubjects = MAX_SUBJECTS,
}: {
  clock: Pick<Clock, 'now'>
  store: LeaseStore
  whenCutOff: WhenCutOff
  maxSubjects?: number
}): RequestLimits {
  const holderId = newId(clock.now())
  /** By name: the id of a lineage of keys, or a prefix and the id of a user. */
  const subjects = new Map<string, Subject>()
  let holdsUntil: Instant = 0
  /** Incremented when the lease lapsed: shares must then be confirmed before they are used again. */
  let term = 0
  let renewing: Promise<void> | null = null
  let cutOff: { until: Instant; cause: unknown } | null = null

  return {
    take(demands, count) {
      const now = clock.now()
      const demandedSubjects = demands.map(subjectOf)
      if (demandedSubjects.every(subject => missingFor(subject, count, now) === null))
        return admit(demandedSubjects, count, now)
      return takeWithClaims(demands, count)
    },
    peek,
    sweep,
    async releaseAll() {
      await inBatches([...subjects.values()], releaseShares)
      if (subjects.size === 0 && holdsUntil > 0) await store.removeHolder(holderId)
    },
    get size() {
      return subjects.size
    },
  }

  function subjectOf(demand: Demand): Subject {
    let subject = subjects.get(demand.subject)
    if (!subject) {
      subject = new Subject(demand.subject)
      subjects.set(demand.subject, subject)
    }
    subject.demand(demand.windows)
    return subject
  }

  /** Why the subject cannot let `count` requests through now; null if it can. */
  function missingFor(subject: Subject, count: number, now: Instant): 'lease' | 'room' | null {
    if (now >= holdsUntil || subject.term !== term) return 'lease'
    return subject.fits(count, now) ? null : 'room'
  }

  function admit(demandedSubjects: readonly Subject[], count: number, now: Instant): RateLimitState[] {
    for (const subject of demandedSubjects) {
      subject.add(count, now)
      if (subject.isRunningOut(now) && now >= subject.refusedUntil) void claimFor(subject).catch(() => {})
    }
    return demandedSubjects.flatMap(subject => subject.states(now))
  }

  async function takeWithClaims(demands: readonly Demand[], count: number): Promise<RateLimitState[]> {
    await releaseOldestIfFull()
    const waiting = demands.map(subjectOf)
    for (const subject of waiting) subject.addWaiting(count, clock.now())
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const now = clock.now()
        const demandedSubjects = demands.map(subjectOf)
        const insufficient = demandedSubjects.filter(subject => missingFor(subject, count, now) !== null)
        if (insufficient.length === 0) return admit(demandedSubjects, count, now)
        const refusingSubjects = insufficient.filter(
          subject =>
            missingFor(subject, count, now) === 'room' &&
            // Regardless of how long the claim took, one request does not repeat a claim that was just refused.
            ((attempt > 0 && subject.isShort) || isRefused(subject, count, now)),
        )
        if (refusingSubjects.length > 0) throw rateLimited(refusingSubjects, count, now)
        try {
          await Promise.all(insufficient.map(claimFor))
        } catch (error) {
          return withoutDatabase(demandedSubjects, count, error)
        }
      }
      throw unavailable(new Overtaken())
    } finally {
      for (const subject of waiting) subject.addWaiting(-count, clock.now())
    }
  }

  /** Whether another claim now would certainly be refused. */
  function isRefused(subject: Subject, count: number, now: Instant): boolean {
    return now < subject.refusedUntil || subject.holdsAll(count, now)
  }

  function withoutDatabase(
    demandedSubjects: readonly Subject[],
    count: number,
    error: unknown,
  ): RateLimitState[] {
    if (whenCutOff === 'closed') throw error instanceof KeywayError ? error : unavailable(error)
    const now = clock.now()
    const fullSubjects = demandedSubjects.filter(subject => !subject.fitsAlone(count, now))
    if (fullSubjects.length > 0) throw rateLimited(fullSubjects, count, now)
    for (const subject of demandedSubjects) subject.add(count, now)
    return demandedSubjects.flatMap(subject => subject.states(now))
  }

  /** Makes one claim at a time, shared by all waiting requests. */
  function claimFor(subject: Subject): Promise<void> {
    const now = clock.now()
    if (cutOff && now < cutOff.until) return Promise.reject(cutOff.cause)
    subject.changing ??= changeShared(subject, 'claim')
      .catch(cause => {
        // A row that other nodes keep changing says nothing about the database, or the limits of others.
        if (!(cause instanceof Overtaken)) cutOff = { until: clock.now() + CUT_OFF_FOR, cause }
        throw cause
      })
      .finally(() => {
        subject.changing = null
      })
    return subject.changing
  }

  /** Reduces the subject's shares to what it uses. */
  async function lowerShares(subject: Subject): Promise<void> {
    await change(subject, 'lower')
  }

  async function releaseShares(subject: Subject): Promise<void> {
    await change(subject, 'release')
  }

  async function change(subject: Subject, how: 'lower' | 'release'): Promise<void> {
    await subject.changing?.catch(() => {})
    if (subject.changing || subject.waiting > 0) return
    subject.changing = changeShared(subject, how).finally(() => {
      subject.changing = null
    })
    await subject.changing
  }

  async function changeShared(subject: Subject, how: 'claim' | 'lower' | 'release'): Promise<void> {
    await holdLease()
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const row = await store.read(subject.name)
      const read = await readState(row)
      const now = clock.now()
      // Another node considered this one dead, and recorded its requests as past ones.
      if (!isHolder(read, holderId)) subject.resetCounts()
      if (how === 'release') subject.holdNothing()
      const isDone =
        how === 'release'
          ? await tryRelease(subject, row, read, now)
          : await tryClaim(subject, row, read, how, now)
      if (isDone) return
    }
    throw new Overtaken()
  }

  async function tryClaim(
    subject: Subject,
    row: LeaseRow | null,
    read: SharedState,
    how: 'claim' | 'lower',
    now: Instant,
  ): Promise<boolean> {
    const claims = subject.claims(how, now)
    const { state, grants } = claim(read, holderId, claims, now)
    const isShort = claims.some(({ wanted }, index) => grants[index]!.held < wanted)
    const isChanged = subject.term !== term || !isHolder(read, holderId) || subject.isChangedBy(grants)
    const isOpenClaim = how === 'claim' && isShort && Object.keys(state.holders).length > 1
    if (!isChanged && !(isOpenClaim && (row?.wantedAt ?? 0) <= now - OPEN_CLAIM_INTERVAL)) {
      noteOutcome(subject, isShort)
      return true
    }
    // A lower share applies before other nodes may use the rest, a higher one only after it was written.
    subject.hold(grants, 'lower')
    const termBefore = term
    const wantedAt = isOpenClaim ? now : (row?.wantedAt ?? null)
    if (!(await write(subject.name, row, state, wantedAt, now))) return false
    if (termBefore !== term) return false
    subject.hold(grants, 'raise', term)
    noteOutcome(subject, how === 'claim' && isShort)
    return true
  }

  function noteOutcome(subject: Subject, isShort: boolean): void {
    subject.isShort = isShort
    subject.refusedUntil = isShort ? clock.now() + RETRY_AFTER_REFUSAL_MS : 0
  }

  async function tryRelease(
    subject: Subject,
    row: LeaseRow | null,
    read: SharedState,
    now: Instant,
  ): Promise<boolean> {
    const state = release(read, holderId, subject.counted(now), now)
    if (!(await write(subject.name, row, state, row?.wantedAt ?? null, now))) return false
    // Removed at once; waiting requests continue with a new subject.
    subjects.delete(subject.name)
    return true
  }

  function write(
    name: string,
    row: LeaseRow | null,
    state: SharedState,
    wantedAt: Instant | null,
    now: Instant,
  ): Promise<boolean> {
    const prunableAt = obsoleteFrom(state, now + HOLDER_LEASE)
    return store.write(name, row, { state: JSON.stringify(state), wantedAt, prunableAt }, now)
  }

  /** The state without dead holders. */
  async function readState(row: LeaseRow | null): Promise<SharedState> {
    if (!row) return EMPTY_STATE
    const state = JSON.parse(row.state) as SharedState
    const others = Object.keys(state.holders).filter(holder => holder !== holderId)
    if (others.length === 0) return state
    const until = await store.holders(others)
    const now = clock.now()
    const ends = others
      .map(holder => [holder, (until.get(holder) ?? now - HOLDER_MARGIN) + HOLDER_MARGIN] as const)
      .filter(([, end]) => end <= now)
    return withoutDeadHolders(state, new Map(ends), now)
  }

  /** Renews the lease of this node if little of it is left. */
  async function holdLease(): Promise<void> {
    if (holdsUntil - clock.now() > RENEWED_BELOW) return
    renewing ??= renew().finally(() => {
      renewing = null
    })
    await renewing
  }

  async function renew(): Promise<void> {
    const now = clock.now()
    await store.renewHolder(holderId, now + HOLDER_LEASE)
    if (clock.now() >= holdsUntil) term++
    holdsUntil = Math.max(holdsUntil, now + HOLDER_LEASE)
  }

  async function peek(demands: readonly Demand[]): Promise<RateLimitState[]> {
    const now = clock.now()
    const states = await Promise.all(
      demands.map(async ({ subject: name, windows }) => {
        const subject = subjects.get(name)
        if (subject && subject.term === term && now < holdsUntil) {
          subject.demand(windows)
          return subject.states(now)
        }
        return statesOf({ subject: name, windows }, await readState(await store.read(name)), now)
      }),
    )
    return states.flat()
  }

  async function sweep(): Promise<void> {
    if (subjects.size === 0) return
    await holdLease()
    const now = clock.now()
    const openClaims = new Set(await store.wantedSince(now - 2 * SWEEP_INTERVAL, MAX_OPEN_CLAIMS))
    const all = [...subjects.values()]
    await inBatches(
      all.filter(subject => now - subject.usedAt >= IDLE_AFTER),
      releaseShares,
    )
    await inBatches(
      all.filter(
        subject =>
          openClaims.has(subject.name) && subjects.get(subject.name) === subject && subject.hasSlack(now),
      ),
      lowerShares,
    )
  }

  /** Releases the oldest subjects if there are too many. */
  async function releaseOldestIfFull(): Promise<void> {
    if (subjects.size <= maxSubjects) return
    for (const subject of subjects.values()) {
      if (subject.changing || subject.waiting > 0) continue
      await releaseShares(subject).catch(() => {})
      return
    }
  }
}

function statesOf({ subject: name, windows }: Demand, state: SharedState, now: Instant): RateLimitState[] {
  const subject = new Subject(name)
  subject.demand(windows)
  subject.hold(claim(state, '', subject.claims('lower', now), now).grants, 'lower')
  return subject.states(now)
}

async function inBatches(
  subjects: readonly Subject[],
  work: (subject: Subject) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < subjects.length; start += SWEPT_AT_ONCE)
    await Promise.all(subjects.slice(start, start + SWEPT_AT_ONCE).map(work))
}

function rateLimited(full: readonly Subject[], count: number, now: Instant): KeywayError {
  const states = full.flatMap(subject => subject.states(now))
  const waits = full.flatMap(subject => subject.waits(count, now))
  const longest = waits.reduce((most, wait) => (wait.retryAfter > most.retryAfter ? wait : most))
  const { retryAfter, per, limit } = longest
  const detail = `More than ${limit} requests within this ${per}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
  return new KeywayError('rate_limited', detail, { retryAfter, window: per, limits: states })
}
