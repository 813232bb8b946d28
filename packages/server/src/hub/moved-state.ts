import type { KeptMessage } from './message-log.ts'
import type { SendsState } from './numbered-sends.ts'

/** The state of a connection that moves from one node to another. */
export interface MovedState {
  /** The sequence number of the last message to its agent. */
  seq: number
  /** The sequence number of the last message before the socket broke; equal to `seq` if it had not broken. */
  heldSeq: number
  /** Milliseconds since the socket broke; 0 if it had not broken. */
  heldMs: number
  secretHash: string
  address: string
  client: string | null
  sends: SendsState | null
  /** See `MessageLog.leftNodes`. */
  passed: [nodeId: string, number: number][]
  /** The last messages, each with its origin (`KeptMessage.origin`). */
  messages: [origin: string, frame: string][]
}

export function toMovedMessages(messages: readonly KeptMessage[]): MovedState['messages'] {
  return messages.map(({ origin, frame }) => [origin, frame])
}

/**
 * Validates the state that another node sent. Null if it is invalid, or if that node sent no state, since it no longer
 * keeps all messages that the agent missed.
 */
export function parseMovedState(value: unknown): MovedState | null {
  if (typeof value !== 'object' || value === null) return null
  const { seq, heldSeq, heldMs, secretHash, address, client, sends, passed, messages } =
    value as Partial<MovedState>
  const isValid =
    [seq, heldSeq].every(isCount) &&
    typeof heldMs === 'number' &&
    typeof secretHash === 'string' &&
    typeof address === 'string' &&
    (client === null || typeof client === 'string') &&
    (sends === null || isSendsState(sends)) &&
    Array.isArray(passed) &&
    passed.every(pair => Array.isArray(pair) && typeof pair[0] === 'string' && isCount(pair[1])) &&
    Array.isArray(messages) &&
    messages.every(isTextPair)
  return isValid ? (value as MovedState) : null
}

function isSendsState(value: unknown): value is SendsState {
  const { accepted, outcomes } = (value ?? {}) as Partial<SendsState>
  return isCount(accepted) && Array.isArray(outcomes) && outcomes.every(pair => isPair(pair, isCount))
}

function isTextPair(value: unknown): boolean {
  return isPair(value, each => typeof each === 'string')
}

function isPair(value: unknown, isPart: (part: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length === 2 && value.every(isPart)
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
