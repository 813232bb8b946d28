import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { Hint } from '../events.ts'
import type { Log } from '../log.ts'
import type { Storage } from '../store.ts'
import { describeError, type Schedule, STORE_PAUSE, scheduleTimer } from './delivery.ts'
import { interrupt } from './interruption.ts'

/** Maximum interval of polls of the queue, which also find items whose `queuedEvent` was lost. */
const MAX_POLL_INTERVAL = 5 * SECOND
/** For this long after a failed lease statement, each poll releases rows that the statement may have leased anyway. */
const UNKNOWN_LEASE_WINDOW = 30 * SECOND
/** The last part of `stop`'s `timeoutMs`: work in progress is aborted, and its items' leases can still be released. */
const RELEASE_MS = 500

/** A queue in the database. One node at a time works on an item: a mail, or the events of one subject for a webhook. */
export interface LeasedWork<Item extends { id: string }> {
  /** The queue's name in the log. */
  name: string
  /** The type of the event that is published when an item was queued. */
  queuedEvent: Hint['type']
  /** Maximum number of items that one node works on at the same time. */
  concurrency: number
  /** How long an item is leased to a node, in milliseconds; then another node may lease it. */
  leaseTime: number
  /** Leases at most `capacity` due items by a conditional update. */
  lease(now: Instant, leasedUntil: Instant, capacity: number): Promise<Item[]>
  /**
   * Releases this node's leases on all items except `idsInProgress`: the node does not know of a lease if the answer to
   * `lease` was lost.
   */
  releaseUnknown(idsInProgress: readonly string[]): Promise<unknown>
  /** When the first item for which this node has capacity is due and no longer leased; null if there is none. */
  nextDue(): Promise<Instant | null>
  /** Rejects only when the database is unavailable. */
  run(item: Item, abort: AbortController): Promise<void>
}

export interface Worker {
  /** Works on due items until stopped; polls after each `queuedEvent` and by a timer. */
  start(): void
  /**
   * Leases nothing new, waits for items in progress, and aborts those that are left shortly before `timeoutMs` have
   * passed: their attempts fail. Resolves after `timeoutMs` at the latest.
   */
  stop(timeoutMs: number): Promise<void>
  /** Works on everything that is due now, for tests and commands. */
  drain(): Promise<void>
}

/**
 * Works on queued items at least once: each is leased by a conditional update, worked on outside any transaction, and
 * settled. If a node dies in between, its lease expires and another node repeats the work.
 */
export function createWorker<Item extends { id: string }>(
  work: LeasedWork<Item>,
  deps: { storage: Pick<Storage, 'events'>; clock: Clock; log: Log; schedule?: Schedule },
): Worker {
  const { storage, clock, log, schedule = scheduleTimer } = deps
  /** The work on each leased item, with the controller that aborts it. */
  const workInProgress = new Map<Promise<void>, AbortController>()
  const idsInProgress = new Set<string>()
  /** Until this time the node may have leases that it does not know of: the answer to `lease` may have been lost. */
  let unknownLeasesUntil = Number.NEGATIVE_INFINITY
  const doneListeners = new Set<() => void>()
  let isRunning = false
  let isStopping = false
  let currentPoll: Promise<boolean> | null = null
  let isPollRequested = false
  let unsubscribe = () => {}
  let cancelTimer = () => {}

  /** Leases and starts due items, up to the concurrency limit. Resolves with false if the queue could not be read. */
  function poll(): Promise<boolean> {
    isPollRequested = true
    currentPoll ??= leaseAndStart().finally(() => {
      currentPoll = null
      // Another poll was requested meanwhile, for an item that may have been queued after this poll's query.
      if (isRunning && isPollRequested && hasCapacity()) void poll()
    })
    return currentPoll
  }

  function hasCapacity(): boolean {
    return !isStopping && workInProgress.size < work.concurrency
  }

  async function leaseAndStart(): Promise<boolean> {
    try {
      while (isPollRequested && hasCapacity()) {
        isPollRequested = false
        const capacity = work.concurrency - workInProgress.size
        const now = clock.now()
        if (now < unknownLeasesUntil) await work.releaseUnknown([...idsInProgress])
        const items = await work.lease(now, now + work.leaseTime, capacity)
        for (const item of items) start(item)
        if (items.length === capacity) isPollRequested = true
      }
      if (isRunning && hasCapacity()) await scheduleNextPoll()
      return true
    } catch (error) {
      isPollRequested = false
      unknownLeasesUntil = clock.now() + UNKNOWN_LEASE_WINDOW
      log.warn({ queue: work.name, reason: describeError(error) }, 'A queue cannot be read; trying again.')
      schedulePoll(STORE_PAUSE)
      return false
    }
  }

  function start(item: Item): void {
    idsInProgress.add(item.id)
    const abort = new AbortController()
    const completion = work
      .run(item, abort)
      .catch(error =>
        log.error(
          { queue: work.name, id: item.id, reason: describeError(error) },
          'An item of a queue could not be settled.',
        ),
      )
      .then(() => {
        workInProgress.delete(completion)
        idsInProgress.delete(item.id)
        for (const listener of doneListeners) listener()
        // The current poll may have queried the queue before this item's capacity was free.
        isPollRequested = true
        if (isRunning) void poll()
      })
    workInProgress.set(completion, abort)
  }

  async function scheduleNextPoll(): Promise<void> {
    const nextDueAt = await work.nextDue()
    // An item that is due although this node could not lease it is leased by another node: without a minimum delay,
    // this node would poll in a busy loop.
    if (nextDueAt !== null) schedulePoll(Math.max(nextDueAt - clock.now(), STORE_PAUSE / 10))
    else schedulePoll(MAX_POLL_INTERVAL)
  }

  function schedulePoll(delay: number): void {
    cancelTimer()
    if (isRunning) cancelTimer = schedule(() => void poll(), Math.min(delay, MAX_POLL_INTERVAL))
  }

  return {
    start() {
      if (isRunning) return
      isRunning = true
      isStopping = false
      unsubscribe = storage.events.subscribe(event => {
        if (event.type === work.queuedEvent && isRunning) void poll()
      })
      void poll()
    },

    async stop(timeoutMs) {
      isRunning = false
      isStopping = true
      unsubscribe()
      cancelTimer()
      const waitForItems = () => Promise.all(workInProgress.keys())
      await withTimeout(Promise.resolve(currentPoll).then(waitForItems), timeoutMs - RELEASE_MS)
      for (const abort of workInProgress.values()) interrupt(abort)
      await withTimeout(waitForItems(), RELEASE_MS)
    },

    async drain() {
      for (;;) {
        const hasAnswered = await poll()
        if (isPollRequested && hasCapacity()) continue
        if (workInProgress.size === 0) return
        if (!hasAnswered) await Promise.all(workInProgress.keys())
        else await new Promise<void>(resolve => addOnce(doneListeners, resolve))
      }
    },
  }
}

function addOnce(listeners: Set<() => void>, callback: () => void): void {
  const listener = () => {
    listeners.delete(listener)
    callback()
  }
  listeners.add(listener)
}

/** Resolves when the work is done, or after this many milliseconds. */
async function withTimeout(work: Promise<unknown>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise(resolve => {
    timer = setTimeout(resolve, Math.max(0, milliseconds))
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}
