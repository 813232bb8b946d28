import type { Events, RelayEvent, RelayMessage, RelayOrder } from '../events.ts'
import type { Log } from '../log.ts'
import type { Presence } from './presence.ts'
import { createRelayQueue } from './relay-queue.ts'

/** How long an answer of another node is waited for. */
export const RELAY_TIMEOUT_MS = 1000
/** A live node answers within milliseconds; one that died a moment ago never will, and no start waits long for it. */
const GREETING_TIMEOUT_MS = 300
/** Questions to other nodes that may be open; above that only this node is served. */
const MAX_OPEN_QUESTIONS = 10_000
/** Of these, for one owner: more than any burst of a connection, so that few owners cannot fill them all. */
const MAX_OPEN_QUESTIONS_PER_OWNER = 500

interface Question {
  owner: string | null
  count: number
  unanswered: Set<string>
  timer: NodeJS.Timeout
  resolve(count: number): void
}

export interface Relay {
  /**
   * Has an order carried out by all other live nodes; returns the sum of what they answer within 1 s. Orders
   * arrive in the order in which they were given. Where there is no other node nothing is published.
   */
  ask(order: RelayOrder): Promise<number>
  /** Resolves when the orders that other nodes gave before now have been carried out here; at the latest in 2 s. */
  catchUp(): Promise<void>
  /** Makes this node known to the others; resolves when they know it, at the latest in 300 ms. */
  greet(): Promise<void>
  receive(event: RelayEvent): void
  stop(): void
}

export function createRelay(deps: {
  events: Events
  presence: Pick<Presence, 'peers' | 'met'>
  log: Log
  nodeId: string
  /** How many connections here an order reached. */
  carryOut(order: RelayOrder): number
}): Relay {
  const { presence, nodeId, carryOut } = deps
  const queue = createRelayQueue(deps)
  const open = new Map<number, Question>()
  const openOf = new Map<string, number>()
  /** Peers that did not answer a request and have sent nothing since: presumed dead and not waited for. */
  const silent = new Set<string>()
  let lastQuestion = 0
  let catchingUp = Promise.resolve()
  /** Not begun yet: all who ask meanwhile share it, so ten thousand agents that leave cost a few questions. */
  let nextCatchUp: Promise<void> | undefined

  return {
    ask,
    catchUp() {
      nextCatchUp ??= catchingUp.then(() => {
        nextCatchUp = undefined
        catchingUp = ping(RELAY_TIMEOUT_MS)
        return catchingUp
      })
      return nextCatchUp
    },
    greet: () => ping(GREETING_TIMEOUT_MS),
    receive({ to, message }) {
      // A message that was recorded before this process started does not name it.
      if (!to.includes(nodeId) || message.from === nodeId) return
      presence.met(message.from)
      silent.delete(message.from)
      if (message.kind === 'answer') return receiveAnswer(message)
      const { from, question, order } = message
      publish([from], { kind: 'answer', from: nodeId, question, count: carryOut(order) })
    },
    stop() {
      for (const question of [...open.keys()]) conclude(question)
    },
  }

  async function ping(timeoutMs: number): Promise<void> {
    await ask({ op: 'ping' }, timeoutMs)
  }

  function ask(order: RelayOrder, timeoutMs = RELAY_TIMEOUT_MS): Promise<number> {
    const peers = presence.peers()
    const owner = order.op === 'ping' ? null : order.userId
    if (peers.length === 0 || open.size >= MAX_OPEN_QUESTIONS) return Promise.resolve(0)
    if (owner && (openOf.get(owner) ?? 0) >= MAX_OPEN_QUESTIONS_PER_OWNER) return Promise.resolve(0)
    const question = ++lastQuestion
    const unanswered = new Set(peers.filter(peer => !silent.has(peer)))
    const isAwaited = unanswered.size > 0
    // Whoever stopped waiting was told that nothing was delivered: then nothing is.
    const isWanted = () => !isAwaited || open.has(question)
    if (!publish(peers, { kind: 'order', from: nodeId, question, order }, isWanted)) return Promise.resolve(0)
    if (!isAwaited) return Promise.resolve(0)
    return new Promise(resolve => {
      const timer = setTimeout(() => giveUp(question), timeoutMs)
      timer.unref()
      open.set(question, { owner, count: 0, unanswered, timer, resolve })
      if (owner) openOf.set(owner, (openOf.get(owner) ?? 0) + 1)
    })
  }

  function receiveAnswer({ from, question, count }: { from: string; question: number; count: number }): void {
    const asked = open.get(question)
    if (!asked?.unanswered.delete(from)) return
    asked.count += count
    if (asked.unanswered.size === 0) conclude(question)
  }

  function giveUp(question: number): void {
    const peers = presence.peers()
    for (const peer of silent) if (!peers.includes(peer)) silent.delete(peer)
    for (const peer of open.get(question)?.unanswered ?? []) if (peers.includes(peer)) silent.add(peer)
    conclude(question)
  }

  function conclude(question: number): void {
    const asked = open.get(question)
    if (!asked) return
    open.delete(question)
    clearTimeout(asked.timer)
    const { owner } = asked
    if (owner) {
      const left = openOf.get(owner)! - 1
      if (left === 0) openOf.delete(owner)
      else openOf.set(owner, left)
    }
    asked.resolve(asked.count)
  }

  /** False when too much waits to be published already. */
  function publish(to: readonly string[], message: RelayMessage, isWanted?: () => boolean): boolean {
    return queue.add({ type: 'hub.relay', to, message }, isWanted)
  }
}
