/** Requests that start as they arrive in one turn of the event loop: some 50 µs each, so at most about 1 ms. */
const STARTED_ON_ARRIVAL = 16
/**
 * How long waiting requests are worked on in one turn of the event loop. Short, since Node accepts one connection a
 * turn: a turn of 100 ms is ten new connections a second for everybody.
 */
const SLICE_MS = 1
/** One in so many turns of the queue goes to a noisy network while others wait: slowed down, never shut out. */
const NOISY_SHARE = 4
/** Requests of one flow that may wait; a flow with more is refused, and no other. */
export const MAX_WAITING_OF_A_FLOW = 1000
/** All together, about 50 MB of requests that were read and not begun; beyond it each network has its share. */
export const MAX_WAITING = 10_000
/** Refusals within one period after which a network counts as noisy, until a whole period went by without so many. */
export const NOISY_AFTER = 30
const PERIOD_MS = 10_000
/** Networks whose refusals are counted in one period; those that come after them go uncounted. */
const MAX_COUNTED_NETWORKS = 50_000

/** Identifies the flow of a request for fair queueing. */
export interface Flow {
  /** Within the network: the presented credential, if any. It is not verified yet, so it can be made up. */
  id: string
  network: string
  /** Calls `drop` when the client disconnects, so that a queued request is removed. */
  whenGone(drop: () => void): void
}

export interface FairQueue {
  /**
   * Starts `work` at once while nothing waits, else when it is the flow's turn. False: too many requests of this
   * flow or its network wait already, and `work` will not be started. Each call has a `work` of its own.
   *
   * @param flowOf asked only when requests have to wait
   */
  start(flowOf: () => Flow, work: () => void): boolean
  /** Counts an answer that refused a request of this network. */
  refused(network: string): void
}

/**
 * Fair queueing (RFC 970) of requests on one event loop: one of each network in turn, and within a network one of
 * each flow. So a thousand requests wait behind each other and not in front of others, and a client
 * that makes up a credential for each request gains turns only from its own network. Networks that are refused again and again
 * yield to all others, so that a flood of wrong credentials from a thousand networks is still behind everybody else.
 *
 * Nothing waits while the process keeps up, and then the queue costs a comparison.
 */
export function createFairQueue(): FairQueue {
  const quiet = createRoundRobin()
  const noisy = createRoundRobin()
  const refusals = createRefusalCounts()
  let startedInTurn = 0
  let isTurnScheduled = false
  let turns = 0
  let sliceEnd = 0

  return {
    start(flowOf, work) {
      scheduleTurn()
      if (waiting() === 0 && startedInTurn < STARTED_ON_ARRIVAL) {
        startedInTurn++
        work()
        return true
      }
      const { id, network, whenGone } = flowOf()
      const queue = refusals.isNoisy(network) ? noisy : quiet
      const drop = queue.add({ id, network }, work, waiting() >= MAX_WAITING)
      if (drop) whenGone(drop)
      return drop !== null
    },
    refused: refusals.count,
  }

  function waiting(): number {
    return quiet.waiting + noisy.waiting
  }

  function scheduleTurn(): void {
    if (isTurnScheduled) return
    isTurnScheduled = true
    setImmediate(takeTurn)
  }

  function takeTurn(): void {
    isTurnScheduled = false
    startedInTurn = 0
    if (waiting() === 0) return
    sliceEnd = performance.now() + SLICE_MS
    startNext()
  }

  function startNext(): void {
    if (waiting() > 0) next()()
    if (waiting() === 0) return
    if (performance.now() < sliceEnd) queueMicrotask(afterMicrotasks)
    else scheduleTurn()
  }

  /**
   * Handlers go on in microtasks, and most are done when those are. A tick that is queued from a microtask runs after
   * all of them, so the slice measures the work and not its beginning.
   */
  function afterMicrotasks(): void {
    process.nextTick(startNext)
  }

  function next(): () => void {
    const isTurnOfNoisy = ++turns % NOISY_SHARE === 0
    const [first, second] = isTurnOfNoisy ? [noisy, quiet] : [quiet, noisy]
    return first.waiting > 0 ? first.take() : second.take()
  }
}

/** The queued requests of one network. */
interface Waiting {
  /** In the order of their turns: the first is next. */
  flows: Map<string, Set<() => void>>
  count: number
}

function createRoundRobin() {
  /** In the order of their turns: the first is next. */
  const networks = new Map<string, Waiting>()
  let waiting = 0
  return {
    get waiting() {
      return waiting
    },
    /**
     * Null when the flow has no room, or, where all room is taken, its network already has its share.
     *
     * @returns drops the work, if it still waits
     */
    add(
      { id, network }: Pick<Flow, 'id' | 'network'>,
      work: () => void,
      isFull: boolean,
    ): (() => void) | null {
      const own = networks.get(network) ?? { flows: new Map(), count: 0 }
      const works = own.flows.get(id) ?? new Set()
      if (works.size >= MAX_WAITING_OF_A_FLOW) return null
      if (isFull && own.count >= Math.max(1, MAX_WAITING / (networks.size + 1))) return null
      own.flows.set(id, works.add(work))
      networks.set(network, own)
      own.count++
      waiting++
      return () => {
        if (!works.delete(work)) return
        own.count--
        waiting--
        if (works.size === 0) own.flows.delete(id)
        if (own.count === 0) networks.delete(network)
      }
    },
    take(): () => void {
      const [network, own] = first(networks)
      const [id, works] = first(own.flows)
      const [work] = works
      works.delete(work!)
      own.count--
      waiting--
      toTheEnd(own.flows, id, works.size > 0)
      toTheEnd(networks, network, own.count > 0)
      return work!
    },
  }
}

function first<Value>(turns: Map<string, Value>): [string, Value] {
  return turns.entries().next().value!
}

/** After its turn: behind all others, or out of them when nothing of it waits any more. */
function toTheEnd<Value>(turns: Map<string, Value>, name: string, isWaiting: boolean): void {
  const value = turns.get(name)!
  turns.delete(name)
  if (isWaiting) turns.set(name, value)
}

/** Counted in periods, this one and the one before: no timer, and memory is bounded. */
function createRefusalCounts() {
  let current = new Map<string, number>()
  let previous = current
  let startedAt = performance.now()
  return {
    count(network: string): void {
      const now = performance.now()
      if (now - startedAt >= PERIOD_MS) {
        previous = now - startedAt < 2 * PERIOD_MS ? current : new Map()
        current = new Map()
        startedAt = now
      }
      const count = current.get(network)
      if (count === undefined && current.size >= MAX_COUNTED_NETWORKS) return
      current.set(network, (count ?? 0) + 1)
    },
    isNoisy(network: string): boolean {
      if (performance.now() - startedAt >= 2 * PERIOD_MS) return false
      return (current.get(network) ?? 0) >= NOISY_AFTER || (previous.get(network) ?? 0) >= NOISY_AFTER
    },
  }
}
