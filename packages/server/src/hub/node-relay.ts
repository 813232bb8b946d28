import type { Event, Events } from '../events.ts'
import { parseId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Presence } from './presence.ts'

/** How long an answer of another node is waited for. */
export const RELAY_TIMEOUT_MS = 1000
/** One that lives answers within milliseconds; one that died a moment ago never will, and no start waits long for it. */
const GREETING_TIMEOUT_MS = 300
/** Questions to other nodes that may be open; above that only this node is served. */
const MAX_OPEN_QUESTIONS = 5000
const EVERYONE = '*'

/** What one hub asks of all others. */
export type RelayOrder =
  | { op: 'deliver'; userId: string; to: string; frame: string }
  | { op: 'disconnect'; userId: string; target: string }
  /** Nothing but the answer, which comes after all that the node had published before. */
  | { op: 'ping' }

type RelayMessage =
  | { kind: 'order'; from: string; question: number; order: RelayOrder }
  | { kind: 'answer'; from: string; question: number; count: number }

interface Question {
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
  hear(event: Extract<Event, { type: 'hub.relay' }>): void
  stop(): void
}

export function createRelay(deps: {
  events: Events
  presence: Pick<Presence, 'others' | 'met'>
  log: Log
  nodeId: string
  /** How many connections here an order reached. */
  carryOut(order: RelayOrder): number
}): Relay {
  const { events, presence, log, nodeId, carryOut } = deps
  const open = new Map<number, Question>()
  let lastQuestion = 0
  /** One publication after the other: a carrier with several lines would overtake itself. */
  let line = Promise.resolve()
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
    hear({ to, payload }) {
      if (to !== nodeId && to !== EVERYONE) return
      const message = parse(payload)
      if (!message || message.from === nodeId) return
      presence.met(message.from)
      if (message.kind === 'answer') answered(message)
      if (message.kind !== 'order') return
      const { from, question, order } = message
      publish(from, { kind: 'answer', from: nodeId, question, count: carryOut(order) })
    },
    stop() {
      for (const question of [...open.keys()]) conclude(question)
    },
  }

  async function ping(timeoutMs: number): Promise<void> {
    await ask({ op: 'ping' }, timeoutMs)
  }

  function ask(order: RelayOrder, timeoutMs = RELAY_TIMEOUT_MS): Promise<number> {
    const others = presence.others()
    if (others.length === 0 || open.size >= MAX_OPEN_QUESTIONS) return Promise.resolve(0)
    return new Promise(resolve => {
      const question = ++lastQuestion
      const timer = setTimeout(() => conclude(question), timeoutMs)
      timer.unref()
      open.set(question, { count: 0, unanswered: new Set(others), timer, resolve })
      publish(EVERYONE, { kind: 'order', from: nodeId, question, order })
    })
  }

  function answered({ from, question, count }: { from: string; question: number; count: number }): void {
    const asked = open.get(question)
    if (!asked?.unanswered.delete(from)) return
    asked.count += count
    if (asked.unanswered.size === 0) conclude(question)
  }

  function conclude(question: number): void {
    const asked = open.get(question)
    if (!asked) return
    open.delete(question)
    clearTimeout(asked.timer)
    asked.resolve(asked.count)
  }

  function publish(to: string, message: RelayMessage): void {
    const payload = JSON.stringify(message)
    line = line
      .then(() => events.publish({ type: 'hub.relay', to, payload }))
      .catch(error => log.warn({ err: error }, 'another hub could not be told'))
  }
}

/** Both ends are this program, perhaps of a neighbouring version: what is not understood is skipped. */
function parse(payload: string): RelayMessage | null {
  try {
    const message = JSON.parse(payload) as RelayMessage
    return typeof message?.from === 'string' && parseId(message.from) !== null ? message : null
  } catch {
    return null
  }
}
