import { MINUTE, SECOND } from '../clock.ts'
import { type DeliveryDeps, deliver, describeError, STORE_PAUSE, scheduleTimer } from './delivery.ts'
import type { OutboxMessage } from './message.ts'
import type { Dispatcher } from './outbox.ts'

/** Several at once, so that a recipient whose server hangs holds up nobody else; few, so that no provider is flooded. */
export const CONCURRENT_DELIVERIES = 8
/** How long a node may take for one delivery before another node may try. */
export const LEASE = 2 * MINUTE
/** The timer never sleeps longer, should an event be lost. */
const LONGEST_SLEEP = 5 * SECOND
/** For so long after the answer to a lease was lost, what it leased may still come to light. */
const SUSPICION = 30 * SECOND
/** How long deliveries that are under way may take when the process ends. */
export const DRAIN_MAIL_MS = 3 * SECOND
/** What `stop` keeps back for giving leases back. */
const HAND_BACK = 500

/**
 * Takes queued mail out, at least once: a message is leased by a conditional update, sent outside any
 * transaction, and settled. Who dies between sending and settling leaves a lease that runs out, and the mail
 * goes once more under the same Message-ID.
 */
export function createDispatcher(deps: DeliveryDeps): Dispatcher {
  const { storage, clock, log, schedule = scheduleTimer } = deps
  const underWay = new Map<Promise<void>, AbortController>()
  const heldIds = new Set<string>()
  let suspiciousUntil = Number.NEGATIVE_INFINITY
  const watchers = new Set<() => void>()
  let running = false
  let stopping = false
  let leasing: Promise<boolean> | null = null
  let askedAgain = false
  let unsubscribe = () => {}
  let cancelTimer = () => {}
  let sent = 0

  /** Starts what is due as far as there is room. Resolves to whether the store answered. */
  function pump(): Promise<boolean> {
    askedAgain = true
    leasing ??= leaseAndStart().finally(() => {
      leasing = null
      // Asked while the answer was on its way: that mail may have come after the look.
      if (running && askedAgain && hasRoom()) void pump()
    })
    return leasing
  }

  function hasRoom(): boolean {
    return !stopping && underWay.size < CONCURRENT_DELIVERIES
  }

  async function leaseAndStart(): Promise<boolean> {
    try {
      while (askedAgain && hasRoom()) {
        askedAgain = false
        const room = CONCURRENT_DELIVERIES - underWay.size
        const now = clock.now()
        await releaseUnknown(now)
        const messages = await storage.store.outbox.lease(now, now + LEASE, room, deps.nodeId)
        for (const message of messages) start(message)
        if (messages.length === room) askedAgain = true
      }
      if (running && hasRoom()) await sleepUntilNextDue()
      return true
    } catch (error) {
      askedAgain = false
      suspiciousUntil = clock.now() + SUSPICION
      log.warn({ reason: describeError(error) }, 'The outbox cannot be read; trying again.')
      sleep(STORE_PAUSE)
      return false
    }
  }

  /** A lease whose answer was lost is held by nobody who knows of it; without this it would wait for its time. */
  async function releaseUnknown(now: number): Promise<void> {
    if (now >= suspiciousUntil || !deps.nodeId) return
    await storage.store.outbox.releaseUnknown(deps.nodeId, [...heldIds])
  }

  function start(message: OutboxMessage): void {
    heldIds.add(message.id)
    const abort = new AbortController()
    const delivery = deliver(deps, message, abort, () => sent++)
      .catch(error =>
        log.error({ message_id: message.id, reason: describeError(error) }, 'A delivery went wrong.'),
      )
      .then(() => {
        underWay.delete(delivery)
        heldIds.delete(message.id)
        for (const watcher of watchers) watcher()
        if (running) void pump()
      })
    underWay.set(delivery, abort)
  }

  async function sleepUntilNextDue(): Promise<void> {
    const due = await storage.store.outbox.nextDue()
    // What is due now but was not leased is in other hands; looking again at once would be a busy loop.
    if (due !== null) sleep(Math.max(due - clock.now(), STORE_PAUSE / 10))
    else sleep(LONGEST_SLEEP)
  }

  function sleep(delay: number): void {
    cancelTimer()
    if (running) cancelTimer = schedule(() => void pump(), Math.min(delay, LONGEST_SLEEP))
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
      const finished = () => Promise.all(underWay.keys())
      await withinTime(Promise.resolve(leasing).then(finished), deadline - HAND_BACK)
      for (const abort of underWay.values()) abort.abort(new Error('the service is stopping'))
      await withinTime(finished(), HAND_BACK)
    },

    async drain() {
      const before = sent
      for (;;) {
        const answered = await pump()
        if (underWay.size === 0) return sent - before
        if (!answered) await Promise.all(underWay.keys())
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
