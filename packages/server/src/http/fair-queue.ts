import { createEntry, type Entry, LinkedList } from './linked-list.ts'
import { createRefusalCounts } from './refusal-counts.ts'

/**
 * Maximum number of requests that start on arrival in one turn of the event loop, unless they take longer than a slice:
 * about 50 µs each.
 */
const STARTED_ON_ARRIVAL = 16
/**
 * Bounds of the slice: how long queued requests are handled in one turn of the event loop. A slice is as long as all
 * other work (agents' frames, new connections) took since the previous turn, so that queued requests get half of the
 * time. It is short, since Node accepts one connection per turn: with turns of 100 ms it would accept ten connections a
 * second.
 */
const MIN_SLICE_MS = 1
const MAX_SLICE_MS = 10
/**
 * Time of the event loop that a network is credited in each round. A network whose request took longer skips as many
 * rounds: a page that takes 10 ms counts as a hundred exchanges.
 */
const QUANTUM_MS = 0.1
/**
 * Bounds on remembering the used time of networks that have no queued request: how many networks, from how many
 * milliseconds on, and for how long.
 */
const MAX_IDLE_NETWORKS = 10_000
const MIN_USED_MS = 1
const IDLE_FOR_MS = 1000
/**
 * The one of four turns that serves noisy networks while others wait, so that they are slowed down but still served.
 */
const TURN_OF_NOISY = 0
/** The one of four turns that serves unknown networks while known ones wait. */
const TURN_OF_UNKNOWN = 2
const TURNS = 4
/** Maximum number of queued requests of one flow; further ones are refused. */
export const MAX_QUEUED_PER_FLOW = 1000
/**
 * Maximum number of queued requests in total, about 50 MB. When it is reached, each network may have an equal share.
 */
export const MAX_QUEUED = 10_000
/** Identifies the flow of a request for fair queueing. */
export interface Flow {
  /** Within the network: the presented credential, if any. It is not verified yet, so clients may invent any number. */
  id: string
  network: string
  /** Calls `drop` when the client disconnects, so that a queued request is removed. */
  whenGone(drop: () => void): void
}

export interface FairQueue {
  /**
   * Starts `work` at once if no request is queued, otherwise when it is the flow's turn. False: the flow or its network
   * has too many queued requests, and `work` will not be started. Each call needs a `work` function of its own.
   * @param flowOf called only if the request has to wait
   */
  start(flowOf: () => Flow, work: () => void): boolean
  /** As `start`, for work that takes milliseconds: it is always queued. */
  startLong(flow: Flow, work: () => void): boolean
  /** Counts a refused request of this network. */
  refused(network: string): void
  /** Whether many requests of a network were refused lately, so that it yields to others. */
  isNoisy(network: string): boolean
}

/**
 * Fair queueing (RFC 970) of requests on one event loop: deficit round-robin over the networks, by the time that their
 * requests take, and within a network round-robin over its flows. So a burst of one client delays only itself, and a client
 * that invents a credential for each request takes turns only from its own network. Networks without a recent sign-in
 * yield to those that have one, and networks with many refusals to all others, so that a flood from a thousand networks
 * does not delay the people who use the service.
 *
 * While the process keeps up, nothing waits, and the queue costs one comparison per request.
 *
 * @param isKnown whether an account was used from this network lately
 * @param clock monotonic, in milliseconds
 */
export function createFairQueue(
  isKnown: (network: string) => boolean,
  clock: () => number = () => performance.now(),
): FairQueue {
  const known = createRoundRobin(clock)
  const unknown = createRoundRobin(clock)
  const noisy = createRoundRobin(clock)
  const refusals = createRefusalCounts(clock)
  let startedInTurn = 0
  let isTurnScheduled = false
  let turns = 0
  let scheduledAt = 0
  /** Whether the previous turn left requests in the queue. */
  let isContinued = false
  let sliceEnd = 0
  /** The last work that was started, to which the time since then is charged. */
  let running: { charge(ms: number): void; at: number } | null = null

  return {
    start(flowOf, work) {
      scheduleTurn()
      if (waiting() === 0 && mayStartOnArrival()) {
        work()
        return true
      }
      return enqueue(flowOf(), work)
    },
    startLong(flow, work) {
      scheduleTurn()
      return enqueue(flow, work)
    },
    refused: refusals.count,
    isNoisy: refusals.isNoisy,
  }

  function mayStartOnArrival(): boolean {
    const isLate = startedInTurn > 0 && clock() - scheduledAt >= MIN_SLICE_MS
    if (isLate || startedInTurn >= STARTED_ON_ARRIVAL) return false
    startedInTurn++
    return true
  }

  function enqueue({ id, network, whenGone }: Flow, work: () => void): boolean {
    const drop = queueOf(network).add({ id, network }, work, waiting() >= MAX_QUEUED)
    if (drop) whenGone(drop)
    return drop !== null
  }

  function queueOf(network: string): RoundRobin {
    if (refusals.isNoisy(network)) return noisy
    return isKnown(network) ? known : unknown
  }

  function waiting(): number {
    return known.waiting + unknown.waiting + noisy.waiting
  }

  function scheduleTurn(): void {
    if (isTurnScheduled) return
    isTurnScheduled = true
    scheduledAt = clock()
    setImmediate(takeTurn)
  }

  function takeTurn(): void {
    isTurnScheduled = false
    startedInTurn = 0
    if (waiting() === 0) return
    const now = clock()
    const rest = isContinued ? now - scheduledAt : 0
    sliceEnd = now + Math.min(MAX_SLICE_MS, Math.max(MIN_SLICE_MS, rest))
    startNext()
  }

  function startNext(): void {
    const now = clock()
    running?.charge(now - running.at)
    running = null
    isContinued = waiting() > 0
    if (!isContinued) return
    if (now < sliceEnd) {
      run(next(), now)
    } else {
      scheduleTurn()
      scheduledAt = now
    }
  }

  function run({ work, charge }: Taken, now: number): void {
    running = { charge, at: now }
    work()
    queueMicrotask(afterMicrotasks)
  }

  /**
   * Handlers continue in microtasks, and most end in them. A tick that is queued from a microtask runs after all
   * microtasks, so the slice includes this work.
   */
  function afterMicrotasks(): void {
    process.nextTick(startNext)
  }

  function next(): Taken {
    turns++
    if (turns % TURNS === TURN_OF_NOISY) return firstWaiting(noisy, known, unknown)
    if (turns % TURNS === TURN_OF_UNKNOWN) return firstWaiting(unknown, known, noisy)
    return firstWaiting(known, unknown, noisy)
  }
}

function firstWaiting(...queues: RoundRobin[]): Taken {
  return queues.find(queue => queue.waiting > 0)!.take()
}

interface Taken {
  work: () => void
  /** Charges the network for the time that the work took. */
  charge(ms: number): void
}

/** The queued requests of one network. */
interface NetworkQueue {
  flows: Turns<LinkedList<() => void>>
  count: number
  /** Time that its requests took, less the time it was credited since. */
  usedMs: number
}

type RoundRobin = ReturnType<typeof createRoundRobin>

function createRoundRobin(clock: () => number) {
  const networks = createTurns<NetworkQueue>()
  const absent = createUsedTimes(clock)
  let waiting = 0
  return {
    get waiting() {
      return waiting
    },
    /**
     * @param isFull whether MAX_WAITING is reached, so that a network may only have its share
     * @returns a function that removes the work if it is still queued; null if the flow or the network has too many
     */
    add(
      { id, network }: Pick<Flow, 'id' | 'network'>,
      work: () => void,
      isFull: boolean,
    ): (() => void) | null {
      const own = networks.get(network) ?? { flows: createTurns(), count: 0, usedMs: absent.take(network) }
      const works = own.flows.get(id) ?? new LinkedList()
      if (works.size >= MAX_QUEUED_PER_FLOW) return null
      if (isFull && own.count >= Math.max(1, MAX_QUEUED / (networks.size + 1))) return null
      const entry = createEntry(work)
      works.append(entry)
      own.flows.add(id, works)
      networks.add(network, own)
      own.count++
      waiting++
      return () => {
        if (!works.remove(entry)) return
        own.count--
        waiting--
        if (works.size === 0) own.flows.remove(id)
        if (own.count > 0) return
        networks.remove(network)
        remember(network, own)
      }
    },
    take(): Taken {
      let { name: network, queue: own } = networks.first()
      while (own.usedMs >= QUANTUM_MS) {
        own.usedMs -= QUANTUM_MS
        networks.endTurn(true)
        ;({ name: network, queue: own } = networks.first())
      }
      const works = own.flows.first().queue
      const entry = works.first!
      works.remove(entry)
      own.count--
      waiting--
      own.flows.endTurn(works.size > 0)
      if (own.count > 0) networks.endTurn(true)
      else networks.remove(network)
      return { work: entry.value, charge: ms => charge(network, own, ms) }
    },
  }

  function charge(network: string, own: NetworkQueue, ms: number): void {
    own.usedMs += ms
    const present = networks.get(network)
    if (present !== own) remember(network, own, present)
  }

  /**
   * Remembers the used time of a network that has left the queue, for its next request, which may be queued already.
   */
  function remember(network: string, { usedMs }: NetworkQueue, present?: NetworkQueue): void {
    if (usedMs < MIN_USED_MS) return
    if (present) present.usedMs += usedMs
    else absent.add(network, usedMs)
  }
}

/**
 * The used time of networks that have no queued request, so that a client that sends one request after another is
 * charged for all of them.
 */
function createUsedTimes(clock: () => number) {
  const times = new Map<string, number>()
  let clearedAt = clock()
  return {
    add(network: string, ms: number): void {
      const now = clock()
      if (now - clearedAt >= IDLE_FOR_MS) {
        times.clear()
        clearedAt = now
      }
      const before = times.get(network)
      if (before === undefined && times.size >= MAX_IDLE_NETWORKS) return
      times.set(network, (before ?? 0) + ms)
    },
    take(network: string): number {
      const ms = times.get(network) ?? 0
      times.delete(network)
      return ms
    },
  }
}

/** Named queues in the order in which they take turns. */
interface Turns<Queue> {
  readonly size: number
  get(name: string): Queue | undefined
  /** Appends a queue that has no turn yet. */
  add(name: string, queue: Queue): void
  remove(name: string): void
  first(): { name: string; queue: Queue }
  /** Moves the first queue to the end, or removes it if it is empty. */
  endTurn(isWaiting: boolean): void
}

function createTurns<Queue>(): Turns<Queue> {
  const entries = new Map<string, Entry<{ name: string; queue: Queue }>>()
  const order = new LinkedList<{ name: string; queue: Queue }>()
  return {
    get size() {
      return entries.size
    },
    get: name => entries.get(name)?.value.queue,
    add(name, queue) {
      if (entries.has(name)) return
      const entry = createEntry({ name, queue })
      entries.set(name, entry)
      order.append(entry)
    },
    remove,
    first: () => order.first!.value,
    endTurn(isWaiting) {
      const entry = order.first!
      if (!isWaiting) return remove(entry.value.name)
      order.remove(entry)
      order.append(entry)
    },
  }

  function remove(name: string): void {
    order.remove(entries.get(name)!)
    entries.delete(name)
  }
}
