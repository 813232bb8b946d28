import { createEntry, type Entry, LinkedList } from './linked-list.ts'
import { createQueueLengths } from './queue-lengths.ts'
import { createRefusalCounts } from './refusal-counts.ts'

/**
 * Maximum number of requests that start on arrival in one turn of the event loop: fewer if together they take longer
 * than MIN_SLICE_MS. A request takes about 50 µs.
 */
const MAX_STARTED_ON_ARRIVAL = 16
/**
 * Bounds of the slice: how long queued requests are handled in one turn of the event loop. A slice is as long as all
 * other work (agents' frames, new connections) took since the previous turn, so that queued requests get half of the
 * time. It is short, since Node accepts one connection per turn: with turns of 100 ms it would accept ten connections a
 * second.
 */
const MIN_SLICE_MS = 1
const MAX_SLICE_MS = 10
/**
 * Time of the event loop that a network is credited in each round. A network whose request took longer skips one round
 * for each quantum that it used: a hundred rounds for a page that takes 10 ms.
 */
const QUANTUM_MS = 0.1
/** Maximum number of networks without queued requests for which the time that they used is remembered. */
const MAX_IDLE_NETWORKS = 10_000
/** Shorter used times are not remembered. */
const MIN_USED_MS = 1
/** Interval at which remembered used times are cleared. */
const CLEAR_INTERVAL_MS = 1000
/** Of DEQUEUES_PER_CYCLE dequeues, the one in which noisy networks (`isNoisy`) go first, so that they are served. */
const NOISY_FIRST_IN = 0
/** Of DEQUEUES_PER_CYCLE dequeues, the one in which unknown networks (known-networks.ts) go before known ones. */
const UNKNOWN_FIRST_IN = 2
const DEQUEUES_PER_CYCLE = 4
/** Maximum number of queued requests of one flow; further ones are refused. */
export const MAX_QUEUED_PER_FLOW = 1000
/**
 * Maximum number of queued requests in total, about 50 MB. Beyond it, a request of a network with few queued requests
 * takes the place of one of the network with the most.
 */
export const MAX_QUEUED = 10_000
/** The flow of a request: the requests of one network with the same credential, which take turns with other flows. */
export interface Flow {
  /**
   * The path for a health check, otherwise the last characters of the presented credential, or empty without one;
   * unique within the network. The credential is not verified, so clients may invent many.
   */
  id: string
  network: string
  /** Calls `drop` when the client disconnects, so that a queued request is removed. */
  onDisconnect(drop: () => void): void
}

export interface FairQueue {
  /**
   * Starts `work` at once if no request is queued and few were started in this turn of the event loop
   * (MAX_STARTED_ON_ARRIVAL), otherwise when it is the flow's turn, unless the client disconnects first. Calls `refuse`
   * instead if the flow or its network has too many queued requests: at once, or later, when the request has to make
   * room for one of another network.
   *
   * @param flowOf called only if the request has to wait
   */
  start(flowOf: () => Flow, work: () => void, refuse: () => void): void
  /** As `start`, but always queues `work`, since it takes milliseconds. */
  startLong(flow: Flow, work: () => void, refuse: () => void): void
  /**
   * Called for each request of the network that was answered with an error, and each upgrade that the hub refused; see
   * `isNoisy`. Requests that `start` refuses are not counted.
   */
  countRefusal(network: string): void
  /** Whether many requests of a network were refused lately, so that all others have priority over it. */
  isNoisy(network: string): boolean
}

/**
 * Fair queueing (RFC 970) of requests on one event loop: deficit round-robin over the networks, by the time that their
 * requests take, and within a network round-robin over its flows. So a burst of one client delays only that client, and
 * a client that invents a credential for each request takes turns only from its own network. Known networks
 * (known-networks.ts) have priority over unknown ones, and all others have priority over networks with many refusals,
 * so that a flood from a thousand networks does not delay the people who use the service.
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
  const knownNetworks = createRoundRobin(clock)
  const unknownNetworks = createRoundRobin(clock)
  const noisyNetworks = createRoundRobin(clock)
  const refusals = createRefusalCounts(clock)
  let startedOnArrivalCount = 0
  let isSliceScheduled = false
  let dequeueCount = 0
  let scheduledAt = 0
  /** Whether the previous slice left requests in the queue. */
  let hasBacklog = false
  let sliceEnd = 0
  /** The work that was started last. The time since then is charged to its network. */
  let runningWork: { charge(ms: number): void; at: number } | null = null

  return {
    start(flowOf, work, refuse) {
      scheduleSlice()
      if (countQueued() === 0 && mayStartOnArrival()) work()
      else enqueue(flowOf(), { work, refuse })
    },
    startLong(flow, work, refuse) {
      scheduleSlice()
      enqueue(flow, { work, refuse })
    },
    countRefusal: refusals.count,
    isNoisy: refusals.isNoisy,
  }

  function mayStartOnArrival(): boolean {
    const isLate = startedOnArrivalCount > 0 && clock() - scheduledAt >= MIN_SLICE_MS
    if (isLate || startedOnArrivalCount >= MAX_STARTED_ON_ARRIVAL) return false
    startedOnArrivalCount++
    return true
  }

  function enqueue(flow: Flow, request: QueuedRequest): void {
    const queue = queueOf(flow.network)
    if (!queue.hasRoom(flow) || (countQueued() >= MAX_QUEUED && !makeRoom(queue, flow.network)))
      request.refuse()
    else flow.onDisconnect(queue.add(flow, request))
  }

  /**
   * Refuses a queued request of the network with the most, to make room for one of `network`. That network must then
   * still have as many requests as `network` with the new one, or one fewer if its queue (noisy, unknown or known) is
   * served after `ownQueue`; returns false if no network has that many. Of networks with equally many, one in the queue
   * that is served last makes room.
   */
  function makeRoom(ownQueue: RoundRobin, network: string): boolean {
    const ownCount = ownQueue.countOf(network)
    let countToExceed = ownCount
    let drop: (() => QueuedRequest) | null = null
    for (const queue of [noisyNetworks, unknownNetworks, knownNetworks]) {
      if (queue === ownQueue) countToExceed = Math.max(countToExceed, ownCount + 1)
      const longest = queue.longest(countToExceed)
      if (!longest) continue
      countToExceed = longest.count
      drop = longest.dropLast
    }
    drop?.().refuse()
    return drop !== null
  }

  function queueOf(network: string): RoundRobin {
    if (refusals.isNoisy(network)) return noisyNetworks
    return isKnown(network) ? knownNetworks : unknownNetworks
  }

  function countQueued(): number {
    return knownNetworks.queuedCount + unknownNetworks.queuedCount + noisyNetworks.queuedCount
  }

  function scheduleSlice(): void {
    if (isSliceScheduled) return
    isSliceScheduled = true
    scheduledAt = clock()
    setImmediate(startSlice)
  }

  function startSlice(): void {
    isSliceScheduled = false
    startedOnArrivalCount = 0
    if (countQueued() === 0) return
    const now = clock()
    const otherWorkMs = hasBacklog ? now - scheduledAt : 0
    sliceEnd = now + Math.min(MAX_SLICE_MS, Math.max(MIN_SLICE_MS, otherWorkMs))
    startNext()
  }

  function startNext(): void {
    const now = clock()
    runningWork?.charge(now - runningWork.at)
    runningWork = null
    hasBacklog = countQueued() > 0
    if (!hasBacklog) return
    if (now < sliceEnd) {
      run(dequeueNext(), now)
    } else {
      scheduleSlice()
      scheduledAt = now
    }
  }

  function run({ work, charge }: DequeuedWork, now: number): void {
    runningWork = { charge, at: now }
    work()
    queueMicrotask(startNextAfterMicrotasks)
  }

  /**
   * Handlers continue in microtasks, and most end in them. A `nextTick` callback that is queued from a microtask runs
   * after all microtasks, so the time until `sliceEnd` includes this work.
   */
  function startNextAfterMicrotasks(): void {
    process.nextTick(startNext)
  }

  function dequeueNext(): DequeuedWork {
    dequeueCount++
    if (dequeueCount % DEQUEUES_PER_CYCLE === NOISY_FIRST_IN)
      return dequeueFirst(noisyNetworks, knownNetworks, unknownNetworks)
    if (dequeueCount % DEQUEUES_PER_CYCLE === UNKNOWN_FIRST_IN)
      return dequeueFirst(unknownNetworks, knownNetworks, noisyNetworks)
    return dequeueFirst(knownNetworks, unknownNetworks, noisyNetworks)
  }
}

function dequeueFirst(...queues: RoundRobin[]): DequeuedWork {
  return queues.find(queue => queue.queuedCount > 0)!.dequeue()
}

interface QueuedRequest {
  work(): void
  refuse(): void
}

interface DequeuedWork {
  work: () => void
  /** Charges the network for the time that the work took. */
  charge(ms: number): void
}

/** The queued requests of one network. */
interface NetworkQueue {
  /** The network, as an entry of `lengths`. */
  readonly entry: Entry<string>
  flows: TurnOrder<LinkedList<QueuedRequest>>
  count: number
  /** Milliseconds that its requests took, less QUANTUM_MS for each round that it has skipped since. */
  usedMs: number
}

type RoundRobin = ReturnType<typeof createRoundRobin>

function createRoundRobin(clock: () => number) {
  const networks = createTurnOrder<NetworkQueue>()
  const usedTimesOfIdleNetworks = createUsedTimes(clock)
  let queuedCount = 0
  const lengths = createQueueLengths()
  return {
    get queuedCount() {
      return queuedCount
    },
    countOf: (network: string) => networks.get(network)?.count ?? 0,
    /** Whether the flow may have another queued request. */
    hasRoom({ id, network }: Flow): boolean {
      return (networks.get(network)?.flows.get(id)?.size ?? 0) < MAX_QUEUED_PER_FLOW
    },
    /** @returns a function that removes the request if it is still queued */
    add({ id, network }: Flow, request: QueuedRequest): () => void {
      const queue = networks.get(network) ?? {
        entry: createEntry(network),
        flows: createTurnOrder(),
        count: 0,
        usedMs: usedTimesOfIdleNetworks.remove(network),
      }
      const requests = queue.flows.get(id) ?? new LinkedList()
      const entry = createEntry(request)
      requests.append(entry)
      queue.flows.add(id, requests)
      networks.add(network, queue)
      changeCount(queue, 1)
      return () => {
        if (requests.remove(entry)) forget(network, queue, id, requests)
      }
    },
    /**
     * The network with the most requests, if it has more than `least`; of several, the one that reached this number
     * last. `dropLast` removes the request of this network that would be served last.
     */
    longest(least: number): { count: number; dropLast(): QueuedRequest } | null {
      if (lengths.maxLength <= least) return null
      const network = lengths.longest()!
      return { count: lengths.maxLength, dropLast: () => dropLast(network) }
    },
    dequeue(): DequeuedWork {
      let { name: network, queue } = networks.first()
      while (queue.usedMs >= QUANTUM_MS) {
        queue.usedMs -= QUANTUM_MS
        networks.endTurn(true)
        ;({ name: network, queue } = networks.first())
      }
      const requests = queue.flows.first().queue
      const entry = requests.first!
      requests.remove(entry)
      changeCount(queue, -1)
      queue.flows.endTurn(requests.size > 0)
      if (queue.count > 0) networks.endTurn(true)
      else networks.remove(network)
      return { work: entry.value.work, charge: ms => charge(network, queue, ms) }
    },
  }

  function changeCount(queue: NetworkQueue, change: 1 | -1): void {
    lengths.change(queue.entry, queue.count, queue.count + change)
    queue.count += change
    queuedCount += change
  }

  function dropLast(network: string): QueuedRequest {
    const queue = networks.get(network)!
    const { name: id, queue: requests } = queue.flows.last()
    const entry = requests.last!
    requests.remove(entry)
    forget(network, queue, id, requests)
    return entry.value
  }

  /** Updates the counts and turns after a request was removed out of turn. */
  function forget(
    network: string,
    queue: NetworkQueue,
    id: string,
    requests: LinkedList<QueuedRequest>,
  ): void {
    changeCount(queue, -1)
    if (requests.size === 0) queue.flows.remove(id)
    if (queue.count > 0) return
    networks.remove(network)
    rememberUsedTime(network, queue)
  }

  function charge(network: string, queue: NetworkQueue, ms: number): void {
    queue.usedMs += ms
    const currentQueue = networks.get(network)
    if (currentQueue !== queue) rememberUsedTime(network, queue, currentQueue)
  }

  /**
   * Passes on the used time of a network's removed queue: to its current queue, if new requests have created one, else
   * to the queue that its next request creates.
   */
  function rememberUsedTime(network: string, { usedMs }: NetworkQueue, currentQueue?: NetworkQueue): void {
    if (usedMs < MIN_USED_MS) return
    if (currentQueue) currentQueue.usedMs += usedMs
    else usedTimesOfIdleNetworks.add(network, usedMs)
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
      if (now - clearedAt >= CLEAR_INTERVAL_MS) {
        times.clear()
        clearedAt = now
      }
      const previousMs = times.get(network)
      if (previousMs === undefined && times.size >= MAX_IDLE_NETWORKS) return
      times.set(network, (previousMs ?? 0) + ms)
    },
    remove(network: string): number {
      const ms = times.get(network) ?? 0
      times.delete(network)
      return ms
    },
  }
}

/** Named queues in the order in which they take turns. */
interface TurnOrder<Queue> {
  get(name: string): Queue | undefined
  /** Appends a queue, unless it is in the order already. */
  add(name: string, queue: Queue): void
  remove(name: string): void
  first(): { name: string; queue: Queue }
  last(): { name: string; queue: Queue }
  /** Moves the first queue to the end if it still has work, else removes it. */
  endTurn(hasWork: boolean): void
}

function createTurnOrder<Queue>(): TurnOrder<Queue> {
  const entries = new Map<string, Entry<{ name: string; queue: Queue }>>()
  const order = new LinkedList<{ name: string; queue: Queue }>()
  return {
    get: name => entries.get(name)?.value.queue,
    add(name, queue) {
      if (entries.has(name)) return
      const entry = createEntry({ name, queue })
      entries.set(name, entry)
      order.append(entry)
    },
    remove,
    first: () => order.first!.value,
    last: () => order.last!.value,
    endTurn(hasWork) {
      const entry = order.first!
      if (!hasWork) return remove(entry.value.name)
      order.remove(entry)
      order.append(entry)
    },
  }

  function remove(name: string): void {
    order.remove(entries.get(name)!)
    entries.delete(name)
  }
}
