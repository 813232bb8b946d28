import { MINUTE, SECOND } from '../clock.ts'
import { type DeliveryDeps, deliver, describeError, STORE_PAUSE, scheduleTimer } from './delivery.ts'
import type { OutboxMessage } from './message.ts'
import type { Dispatcher } from './outbox.ts'

/** Several at once, so that one hanging server does not delay other recipients; few, so as not to flood a provider. */
export const CONCURRENT_DELIVERIES = 8
/** How long a node has for one delivery before another node may retry it. */
export const LEASE = 2 * MINUTE
/** The longest poll interval, in case an event is lost. */
const MAX_POLL_INTERVAL = 5 * SECOND
/** How long after a failed lease statement this node looks for rows that the statement may have leased after all. */
const UNKNOWN_LEASE_WINDOW = 30 * SECOND
/** How long deliveries in progress may take when the process stops. */
export const DRAIN_MAIL_MS = 3 * SECOND
/** The part of `stop`'s deadline that is reserved for releasing leases. */
const RELEASE_TIME = 500

/**
 * Sends queued mail at least once: a message is leased by a conditional update, sent outside any transaction, and
 * settled. When a node dies between sending and settling, its lease expires and the mail is sent again under the same
 * Message-ID.
 */
export function createDispatcher(deps: DeliveryDeps): Dispatcher {
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
  let sent = 0

  /** Leases and starts due messages, up to the concurrency limit. Resolves with whether the store answered. */
  function pump(): Promise<boolean> {
    pollRequested = true
    leasing ??= leaseAndStart().finally(() => {
      leasing = null
      // Requested during a poll, which may have run before the mail was queued.
      if (running && pollRequested && hasRoom()) void pump()
    })
    return leasing
  }

  function hasRoom(): boolean {
    return !stopping && inProgress.size < CONCURRENT_DELIVERIES
  }

  async function leaseAndStart(): Promise<boolean> {
    try {
      while (pollRequested && hasRoom()) {
        pollRequested = false
        const room = CONCURRENT_DELIVERIES - inProgress.size
        const now = clock.now()
        await releaseUnknown(now)
        const messages = await storage.store.outbox.lease(now, now + LEASE, room, deps.nodeId)
        for (const message of messages) start(message)
        if (messages.length === room) pollRequested = true
      }
      if (running && hasRoom()) await sleepUntilNextDue()
      return true
    } catch (error) {
      pollRequested = false
      mayHoldUnknownUntil = clock.now() + UNKNOWN_LEASE_WINDOW
      log.warn({ reason: describeError(error) }, 'The outbox cannot be read; trying again.')
      sleep(STORE_PAUSE)
      return false
    }
  }

  /** Releases orphaned leases, of a statement whose answer was lost; otherwise they would block until they expire. */
  async function releaseUnknown(now: number): Promise<void> {
    if (now >= mayHoldUnknownUntil || !deps.nodeId) return
    await storage.store.outbox.releaseUnknown(deps.nodeId, [...heldIds])
  }

  function start(message: OutboxMessage): void {
    heldIds.add(message.id)
    const abort = new AbortController()
    const delivery = deliver(deps, message, abort, () => sent++)
      .catch(error =>
        log.error(
          { message_id: message.id, reason: describeError(error) },
          'A delivery could not be settled.',
        ),
      )
      .then(() => {
        inProgress.delete(delivery)
        heldIds.delete(message.id)
        for (const watcher of watchers) watcher()
        if (running) void pump()
      })
    inProgress.set(delivery, abort)
  }

  async function sleepUntilNextDue(): Promise<void> {
    const due = await storage.store.outbox.nextDue()
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
        if (event.type === 'mail.queued' && running) void pump()
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
      const before = sent
      for (;;) {
        const answered = await pump()
        if (inProgress.size === 0) return sent - before
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
