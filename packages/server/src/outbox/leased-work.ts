import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { Hint } from '../events.ts'
import type { Log } from '../log.ts'
import type { Storage } from '../store.ts'
import { describeError, type Schedule, STORE_PAUSE, scheduleTimer } from './delivery.ts'

/** The longest poll interval, in case an event is lost. */
const MAX_POLL_INTERVAL = 5 * SECOND
/** How long after a failed lease statement this node looks for rows that the statement may have leased after all. */
const UNKNOWN_LEASE_WINDOW = 30 * SECOND
/** The part of `stop`'s deadline that is reserved for releasing leases. */
const RELEASE_TIME = 500

/** A queue in the database. Each item is worked on by one node at a time: a mail, or an event for a webhook. */
export interface LeasedWork<Item extends { id: string }> {
  /** The queue's name in the log. */
  name: string
  /** Published when an item was queued. */
  queued: Hint['type']
  /** Items that one node works on at once. */
  concurrency: number
  /** How long an item is leased to a node, in milliseconds; then another node may take it. */
  leaseTime: number
  /** Leases at most `room` due items by a conditional update. */
  lease(now: Instant, leasedUntil: Instant, room: number): Promise<Item[]>
  /** Releases this node's leases except on these items: their lease statement succeeded, but its answer was lost. */
  releaseUnknown(heldIds: readonly string[]): Promise<unknown>
  /** When the next item is due for which this node has capacity (leased items included), or null. */
  nextDue(): Promise<Instant | null>
  /** Rejects only when the database is unavailable. */
  run(item: Item, abort: AbortController): Promise<void>
}

export interface Worker {
  /** Works on due items until stopped; polls after the event and by a timer. */
  start(): void
  /** Leases nothing new and waits at most `deadline` ms for items in progress; the rest stays queued. */
  stop(deadline: number): Promise<void>
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
  const inProgress = new Map<Promise<void>, AbortController>()
  const heldIds = new Set<string>()
  let mayHoldUnknownUntil = Number.NEGATIVE_INFINITY
  const watchers = new Set<() => void>()
  let running = false
  let stopping = false
  let leasing: Promise<boolean> | null = null
  let pollRequested = false
  let unsubscribe = () => {}
  let cancelTimer = () => {}

  /** Leases and starts due items, up to the concurrency limit. Resolves with whether the store answered. */
  function pump(): Promise<boolean> {
    pollRequested = true
    leasing ??= leaseAndStart().finally(() => {
      leasing = null
      // A poll was requested during the last one, which may have run before the item was queued.
      if (running && pollRequested && hasRoom()) void pump()
    })
    return leasing
  }

  function hasRoom(): boolean {
    return !stopping && inProgress.size < work.concurrency
  }

  async function leaseAndStart(): Promise<boolean> {
    try {
      while (pollRequested && hasRoom()) {
        pollRequested = false
        const room = work.concurrency - inProgress.size
        const now = clock.now()
        if (now < mayHoldUnknownUntil) await work.releaseUnknown([...heldIds])
        const items = await work.lease(now, now + work.leaseTime, room)
        for (const item of items) start(item)
        if (items.length === room) pollRequested = true
      }
      if (running && hasRoom()) await sleepUntilNextDue()
      return true
    } catch (error) {
      pollRequested = false
      mayHoldUnknownUntil = clock.now() + UNKNOWN_LEASE_WINDOW
      log.warn({ queue: work.name, reason: describeError(error) }, 'A queue cannot be read; trying again.')
      sleep(STORE_PAUSE)
      return false
    }
  }

  function start(item: Item): void {
    heldIds.add(item.id)
    const abort = new AbortController()
    const done = work
      .run(item, abort)
      .catch(error =>
        log.error(
          { queue: work.name, id: item.id, reason: describeError(error) },
          'An item of a queue could not be settled.',
        ),
      )
      .then(() => {
        inProgress.delete(done)
        heldIds.delete(item.id)
        for (const watcher of watchers) watcher()
        if (running) void pump()
      })
    inProgress.set(done, abort)
  }

  async function sleepUntilNextDue(): Promise<void> {
    const due = await work.nextDue()
    // Due but not leased: another node holds it, and polling without a pause would be a busy loop.
    if (due !== null) sleep(Math.max(due - clock.now(), STORE_PAUSE / 10))
    else sleep(MAX_POLL_INTERVAL)
  }

  function sleep(delay: number): void {
    cancelTimer()
    if (running) cancelTimer = schedule(() => void pump(), Math.min(delay, MAX_POLL_INTERVAL))
  }

  return {
    start() {
      if (running) return
      running = true
      stopping = false
      unsubscribe = storage.events.subscribe(event => {
        if (event.type === work.queued && running) void pump()
      })
      void pump()
    },

    async stop(deadline) {
      running = false
      stopping = true
      unsubscribe()
      cancelTimer()
      const finished = () => Promise.all(inProgress.keys())
      await withinTime(Promise.resolve(leasing).then(finished), deadline - RELEASE_TIME)
      for (const abort of inProgress.values()) abort.abort(new Error('the service is stopping'))
      await withinTime(finished(), RELEASE_TIME)
    },

    async drain() {
      for (;;) {
        const answered = await pump()
        if (inProgress.size === 0) return
        if (!answered) await Promise.all(inProgress.keys())
        else await new Promise<void>(resolve => once(watchers, resolve))
      }
    },
  }
}

function once(watchers: Set<() => void>, resolve: () => void): void {
  const watcher = () => {
    watchers.delete(watcher)
    resolve()
  }
  watchers.add(watcher)
}

async function withinTime(work: Promise<unknown>, milliseconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise(resolve => {
    timer = setTimeout(resolve, Math.max(0, milliseconds))
  })
  await Promise.race([work, timeout])
  clearTimeout(timer)
}
