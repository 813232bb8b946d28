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
import { Subject, type SubjectLimits } from './subject.ts'

/** How long a node may use its shares without reaching the database. A dead node is detected after this time. */
const HOLDER_LEASE = 15 * SECOND
/** The lease is renewed when less time than this remains. */
const RENEW_BELOW = 10 * SECOND
export const SWEEP_INTERVAL = 5 * SECOND
/** A subject without requests is released after this time, which is longer than agents wait between two exchanges. */
const IDLE_AFTER = 20 * MINUTE
/**
 * Maximum number of subjects in memory, each with at most 4 windows of 2 KB. Beyond it those that have been in memory
 * for longest are released.
 */
export const MAX_SUBJECTS = 50_000
/** How long a node waits before it repeats a claim that was not granted in full. */
const RETRY_AFTER_REFUSAL_MS = 250
/**
 * An open claim asks for more than is free while other nodes hold shares. Its time is recorded, at most once in this
 * interval, so that these nodes lower their shares.
 */
const OPEN_CLAIM_INTERVAL = 2 * SECOND
/** Maximum number of subjects with open claims for which one call of `sweep` lowers this node's shares. */
const MAX_OPEN_CLAIMS = 1000
/** How long a node makes no claims after a failure of the database. */
const CLAIM_PAUSE = SECOND
/** Maximum number of attempts to change a row that other nodes keep changing. */
const MAX_ATTEMPTS = 10
/** Maximum number of subjects that are changed concurrently. */
const CONCURRENT_CHANGES = 10

/** The error if other nodes changed the row of a subject during each attempt to change it. */
class WriteConflict extends Error {
  override readonly name = 'WriteConflict'
  override readonly message = 'claims of a limit were overtaken too often'
}

export interface RequestLimits {
  /**
   * Counts requests of all these subjects, or of none if one has no room. Synchronous if the shares of this node
   * suffice, which is almost always.
   * @returns the state of the windows after these requests
   * @throws KeywayError `rate_limited`; `unavailable` if this node is cut off from the database and `whenCutOff` is
   * `closed`
   */
  take(subjectLimits: readonly SubjectLimits[], count: number): RateLimitState[] | Promise<RateLimitState[]>
  /** The current state of the windows; if this node has no share of a subject, it is read from the database. */
  peek(subjectLimits: readonly SubjectLimits[]): Promise<RateLimitState[]>
  /** Called periodically: renews this node's lease, releases unused shares, and lowers those that others ask for. */
  sweep(): Promise<void>
  /** Called at shutdown: releases all shares, so that other nodes know the counts at once. */
  releaseAll(): Promise<void>
  /** Number of subjects in memory. */
  readonly size: number
}

/**
 * Enforces request limits over all nodes without a write per request. A node holds a share of each limit, and lets
 * requests through up to it without the database (subject.ts). The shares are kept in one row per subject
 * (lease-state.ts), replaced by one conditional update: when the node needs more, when another node claims what this
 * one does not use, and at shutdown. Shares never add up to more than the limit; the share of a dead node counts as
 * used at the end of its lease. See docs/decisions/0006-limits.md.
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
  /** Subjects by name: the lineage id of a key, or PERSON_PREFIX and the id of a user. */
  const subjects = new Map<string, Subject>()
  let leaseEnd: Instant = 0
  /** Incremented when the lease is renewed after it lapsed: shares must then be confirmed before they are used again. */
  let term = 0
  let pendingRenewal: Promise<void> | null = null
  let databaseFailure: { until: Instant; cause: unknown } | null = null

  return {
    take(subjectLimits, count) {
      const now = clock.now()
      const countedSubjects = subjectLimits.map(subjectOf)
      if (countedSubjects.every(subject => missingFor(subject, count, now) === null))
        return admit(countedSubjects, count, now)
      return takeWithClaims(subjectLimits, count)
    },
    peek,
    sweep,
    async releaseAll() {
      await inBatches([...subjects.values()], releaseShares)
      if (subjects.size === 0 && leaseEnd > 0) await store.removeHolder(holderId)
    },
    get size() {
      return subjects.size
    },
  }

  function subjectOf(limits: SubjectLimits): Subject {
    let subject = subjects.get(limits.subject)
    if (!subject) {
      subject = new Subject(limits.subject)
      subjects.set(limits.subject, subject)
    }
    subject.setLimits(limits.windows)
    return subject
  }

  /** What the subject lacks to let `count` requests through now: a lease, or room in a window. Null if nothing. */
  function missingFor(subject: Subject, count: number, now: Instant): 'lease' | 'room' | null {
    if (now >= leaseEnd || subject.term !== term) return 'lease'
    return subject.fits(count, now) ? null : 'room'
  }

  function admit(countedSubjects: readonly Subject[], count: number, now: Instant): RateLimitState[] {
    for (const subject of countedSubjects) {
      subject.add(count, now)
      if (subject.isRunningOut(now) && now >= subject.refusedUntil) void claimFor(subject).catch(() => {})
    }
    return countedSubjects.flatMap(subject => subject.states(now))
  }

  async function takeWithClaims(
    subjectLimits: readonly SubjectLimits[],
    count: number,
  ): Promise<RateLimitState[]> {
    await releaseOldestIfFull()
    const waitingSubjects = subjectLimits.map(subjectOf)
    for (const subject of waitingSubjects) subject.addWaiting(count, clock.now())
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const now = clock.now()
        const countedSubjects = subjectLimits.map(subjectOf)
        const insufficientSubjects = countedSubjects.filter(
          subject => missingFor(subject, count, now) !== null,
        )
        if (insufficientSubjects.length === 0) return admit(countedSubjects, count, now)
        const refusingSubjects = insufficientSubjects.filter(
          subject =>
            missingFor(subject, count, now) === 'room' &&
            // A claim that got too little is not repeated for the same request, even after `refusedUntil`.
            ((attempt > 0 && subject.isShort) || isRefused(subject, count, now)),
        )
        if (refusingSubjects.length > 0) throw rateLimited(refusingSubjects, count, now)
        try {
          await Promise.all(insufficientSubjects.map(claimFor))
        } catch (error) {
          return admitWithoutDatabase(countedSubjects, count, error)
        }
      }
      throw unavailable(new WriteConflict())
    } finally {
      for (const subject of waitingSubjects) subject.addWaiting(-count, clock.now())
    }
  }

  /** Whether another claim now would certainly be refused. */
  function isRefused(subject: Subject, count: number, now: Instant): boolean {
    return now < subject.refusedUntil || subject.holdsFullWindow(count, now)
  }

  function admitWithoutDatabase(
    countedSubjects: readonly Subject[],
    count: number,
    error: unknown,
  ): RateLimitState[] {
    if (whenCutOff === 'closed') throw error instanceof KeywayError ? error : unavailable(error)
    const now = clock.now()
    const fullSubjects = countedSubjects.filter(subject => !subject.fitsAlone(count, now))
    if (fullSubjects.length > 0) throw rateLimited(fullSubjects, count, now)
    for (const subject of countedSubjects) subject.add(count, now)
    return countedSubjects.flatMap(subject => subject.states(now))
  }

  /** Claims a larger share for the subject. Requests that wait for the same subject share one claim. */
  function claimFor(subject: Subject): Promise<void> {
    const now = clock.now()
    if (databaseFailure && now < databaseFailure.until) return Promise.reject(databaseFailure.cause)
    subject.changing ??= changeSharedState(subject, 'claim')
      .catch(cause => {
        // A conflict with other nodes is no failure of the database, so it does not pause the claims of other subjects.
        if (!(cause instanceof WriteConflict)) databaseFailure = { until: clock.now() + CLAIM_PAUSE, cause }
        throw cause
      })
      .finally(() => {
        subject.changing = null
      })
    return subject.changing
  }

  /** Reduces this node's shares of the subject's limits to what the node has used of them. */
  async function lowerShares(subject: Subject): Promise<void> {
    await change(subject, 'lower')
  }

  async function releaseShares(subject: Subject): Promise<void> {
    await change(subject, 'release')
  }

  async function change(subject: Subject, how: 'lower' | 'release'): Promise<void> {
    await subject.changing?.catch(() => {})
    if (subject.changing || subject.waiting > 0) return
    subject.changing = changeSharedState(subject, how).finally(() => {
      subject.changing = null
    })
    await subject.changing
  }

  async function changeSharedState(subject: Subject, how: 'claim' | 'lower' | 'release'): Promise<void> {
    await holdLease()
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const row = await store.read(subject.name)
      const sharedState = await readState(row)
      const now = clock.now()
      // If this node held shares before, another node declared it dead and moved its requests to `past`, where they
      // count already. Before the first claim there is nothing to reset.
      if (!isHolder(sharedState, holderId)) subject.resetCounts()
      if (how === 'release') subject.dropShares()
      const isDone =
        how === 'release'
          ? await tryRelease(subject, row, sharedState, now)
          : await tryClaim(subject, row, sharedState, how, now)
      if (isDone) return
    }
    throw new WriteConflict()
  }

  async function tryClaim(
    subject: Subject,
    row: LeaseRow | null,
    sharedState: SharedState,
    how: 'claim' | 'lower',
    now: Instant,
  ): Promise<boolean> {
    const claims = subject.claims(how, now)
    const { state, grants } = claim(sharedState, holderId, claims, now)
    const isShort = claims.some(({ wanted }, index) => grants[index]!.held < wanted)
    const isChanged = subject.term !== term || !isHolder(sharedState, holderId) || subject.isChangedBy(grants)
    const isOpenClaim = how === 'claim' && isShort && Object.keys(state.holders).length > 1
    if (!isChanged && !(isOpenClaim && (row?.wantedAt ?? 0) <= now - OPEN_CLAIM_INTERVAL)) {
      noteOutcome(subject, isShort)
      return true
    }
    // A lower share applies before the row is written, after which other nodes may use the rest; a higher one only
    // after the row was written.
    subject.applyGrants(grants, 'lower')
    const termBefore = term
    const wantedAt = isOpenClaim ? now : (row?.wantedAt ?? null)
    if (!(await write(subject.name, row, state, wantedAt, now))) return false
    if (termBefore !== term) return false
    subject.applyGrants(grants, 'raise', term)
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
    sharedState: SharedState,
    now: Instant,
  ): Promise<boolean> {
    const state = release(sharedState, holderId, subject.history(now), now)
    if (!(await write(subject.name, row, state, row?.wantedAt ?? null, now))) return false
    // Requests that began to wait for this subject meanwhile continue with a new one, which has no share yet.
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

  /** Parses the state of a row, and removes dead holders from it. */
  async function readState(row: LeaseRow | null): Promise<SharedState> {
    if (!row) return EMPTY_STATE
    const state = JSON.parse(row.state) as SharedState
    const otherHolders = Object.keys(state.holders).filter(holder => holder !== holderId)
    if (otherHolders.length === 0) return state
    const leaseEnds = await store.holders(otherHolders)
    const now = clock.now()
    const deadHolders = otherHolders
      .map(holder => [holder, (leaseEnds.get(holder) ?? now - HOLDER_MARGIN) + HOLDER_MARGIN] as const)
      .filter(([, diedAt]) => diedAt <= now)
    return withoutDeadHolders(state, new Map(deadHolders), now)
  }

  /** Renews the lease without which this node may not use its shares, unless more than RENEW_BELOW of it is left. */
  async function holdLease(): Promise<void> {
    if (leaseEnd - clock.now() > RENEW_BELOW) return
    pendingRenewal ??= renew().finally(() => {
      pendingRenewal = null
    })
    await pendingRenewal
  }

  async function renew(): Promise<void> {
    const now = clock.now()
    await store.renewHolder(holderId, now + HOLDER_LEASE)
    if (clock.now() >= leaseEnd) term++
    leaseEnd = Math.max(leaseEnd, now + HOLDER_LEASE)
  }

  async function peek(subjectLimits: readonly SubjectLimits[]): Promise<RateLimitState[]> {
    const now = clock.now()
    const states = await Promise.all(
      subjectLimits.map(async ({ subject: name, windows }) => {
        const subject = subjects.get(name)
        if (subject && subject.term === term && now < leaseEnd) {
          subject.setLimits(windows)
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
    const openClaims = new Set(await store.openClaims(now - 2 * SWEEP_INTERVAL, MAX_OPEN_CLAIMS))
    const allSubjects = [...subjects.values()]
    await inBatches(
      allSubjects.filter(subject => now - subject.usedAt >= IDLE_AFTER),
      releaseShares,
    )
    await inBatches(
      allSubjects.filter(
        subject =>
          openClaims.has(subject.name) && subjects.get(subject.name) === subject && subject.hasSlack(now),
      ),
      lowerShares,
    )
  }

  /** If there are too many subjects, releases the oldest one that is neither being changed nor waited for. */
  async function releaseOldestIfFull(): Promise<void> {
    if (subjects.size <= maxSubjects) return
    for (const subject of subjects.values()) {
      if (subject.changing || subject.waiting > 0) continue
      await releaseShares(subject).catch(() => {})
      return
    }
  }
}

function statesOf(
  { subject: name, windows }: SubjectLimits,
  state: SharedState,
  now: Instant,
): RateLimitState[] {
  const subject = new Subject(name)
  subject.setLimits(windows)
  subject.applyGrants(claim(state, '', subject.claims('lower', now), now).grants, 'lower')
  return subject.states(now)
}

async function inBatches(
  subjects: readonly Subject[],
  work: (subject: Subject) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < subjects.length; start += CONCURRENT_CHANGES)
    await Promise.all(subjects.slice(start, start + CONCURRENT_CHANGES).map(work))
}

function rateLimited(fullSubjects: readonly Subject[], count: number, now: Instant): KeywayError {
  const states = fullSubjects.flatMap(subject => subject.states(now))
  const waits = fullSubjects.flatMap(subject => subject.waits(count, now))
  const longestWait = waits.reduce((most, wait) => (wait.retryAfter > most.retryAfter ? wait : most))
  const { retryAfter, per, limit } = longestWait
  const detail = `More than ${limit} requests within this ${per}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
  return new KeywayError('rate_limited', detail, { retryAfter, window: per, limits: states })
}
