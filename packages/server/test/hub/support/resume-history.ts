import assert from 'node:assert/strict'

/** How long the hub may count a broken connection as a receiver after its agent has opened a new one. */
const STALE_MS = 130_000
/** How long the hub may treat a connection that broke as open. */
const UNNOTICED_MS = 60_000

export interface SentMessage {
  n: number
  /** The index of the receiver, or null if it was sent to all. */
  to: number | null
  at: number
  outcome: { delivered: number; held: number; error?: string } | null
  /**
   * Whether it was unacknowledged when its sender's connection could not be resumed, so that it may have been sent
   * twice.
   */
  isUncertain: boolean
}

/** The history of one agent: its sends, messages and events. */
export interface AgentHistory {
  keyId: string
  received: [sender: number, n: number, padding: string][]
  sent: SentMessage[]
  /** The times at which the agent got `resumed: false`. */
  gaps: number[]
  /**
   * The times at which a connection broke before the agent received `ready`. The hub may hold such a connection and
   * count it as a receiver, but the agent never resumes a connection whose id it does not know.
   */
  abandoned?: number[]
  stopped?: string
  isConnected(): boolean
}

/**
 * Checks that all agents are connected in the end, that each receiver got each sender's messages once and in order, and
 * that each message was acknowledged or refused. An acknowledged message to one agent may only be missing if it is
 * `isUncertain`, if its receiver had a gap (`gaps`), or if the acknowledgement counted no connections of the receiver
 * but `abandoned` ones.
 *
 * @param isLossless whether no fault could lose a message, so that there must be no gap either
 * @throws AssertionError
 */
export function checkHistories(histories: readonly AgentHistory[], isLossless: boolean): void {
  for (const [index, history] of histories.entries()) {
    assert.equal(history.stopped, undefined, `agent ${index} stopped: ${history.stopped}`)
    assert.ok(history.isConnected(), `agent ${index} is not connected in the end`)
    if (isLossless) assert.equal(history.gaps.length, 0, `agent ${index} was told of a gap`)
    for (const [sender, { sent }] of histories.entries()) checkOrder(index, sender, history, sent)
  }
  for (const [sender, { sent }] of histories.entries()) {
    for (const each of sent) checkArrival(sender, each, histories, isLossless)
  }
}

function checkOrder(receiver: number, sender: number, history: AgentHistory, sent: readonly SentMessage[]) {
  let lastNumber = -1
  for (const [from, n] of history.received) {
    if (from !== sender || sent[n]!.isUncertain) continue
    assert.notEqual(sender, receiver, `agent ${sender} got its own message ${n}`)
    assert.ok(n > lastNumber, `agent ${receiver} got ${n} of agent ${sender} after ${lastNumber}`)
    lastNumber = n
  }
}

function checkArrival(
  sender: number,
  { n, to, at, outcome, isUncertain }: SentMessage,
  histories: readonly AgentHistory[],
  isLossless: boolean,
): void {
  const name = `message ${n} of agent ${sender}`
  assert.ok(outcome, `${name} was neither acknowledged nor refused`)
  const hasReceived = (index: number) =>
    histories[index]!.received.some(([from, each]) => from === sender && each === n)
  const { gaps, abandoned = [] } = histories[to ?? sender]!
  const breaksBeforeReady = abandoned.filter(
    brokeAt => brokeAt >= at - STALE_MS && brokeAt <= at + UNNOTICED_MS,
  )
  const receiverCount = outcome.delivered + outcome.held - breaksBeforeReady.length
  if (to === null) {
    const agentsWithoutMessage = [...histories.keys()].filter(
      index => index !== sender && !hasReceived(index),
    )
    if (isLossless && !outcome.error) assert.deepEqual(agentsWithoutMessage, [], `${name} did not reach all`)
    return
  }
  if (isLossless && !outcome.error) assert.ok(hasReceived(to), `${name} did not reach agent ${to}`)
  const isExplained = gaps.some(gap => gap >= at - STALE_MS)
  assert.ok(
    receiverCount <= 0 || hasReceived(to) || isUncertain || isExplained,
    `${name} was lost, and agent ${to} not told`,
  )
}
