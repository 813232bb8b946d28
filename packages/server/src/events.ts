import type { Instant } from './clock.ts'
import { parseId } from './ids.ts'

/**
 * A notification that something changed, published to every node after the commit of its transaction. It carries only
 * ids; receivers read the current state from the store. So a lost, late, duplicate or forged hint never has a wrong
 * effect.
 */
export type Hint =
  /** A key was revoked, replaced, or its networks or expiry changed. */
  | { type: 'api_key.changed'; keyId: string; userId: string }
  | { type: 'session.ended'; sessionId: string; userId: string }
  /** The status, role, address or time of deletion of an account changed. */
  | { type: 'user.changed'; userId: string }
  | { type: 'mail.queued' }
  /** A notice to an app that a session ended was queued. */
  | { type: 'logout_notice.queued' }
  /** Events were queued for webhook endpoints. */
  | { type: 'webhook.queued' }
  /** A webhook endpoint was created, changed or removed. */
  | { type: 'webhooks.changed' }
  | { type: 'signing_keys.changed' }
  | { type: 'policies.changed' }
  | { type: 'api_keys.imported' }

/** A command from one hub to others; see hub/node-relay.ts. */
export type RelayCommand =
  | DeliverCommand
  | { op: 'disconnect'; userId: string; target: string }
  /** Only requests an answer, which arrives after everything that the other node published before it. */
  | { op: 'ping'; relayVersion?: number }
  /**
   * The sender has connections of these users; see hub/locations.ts. `targets`: the ids of connections and keys for
   * which it told the receiver earlier that it has no connection (`Absence.lacks`), and is getting one now; see
   * hub/receivers.ts.
   */
  | { op: 'enter'; userIds: readonly string[]; targets?: readonly string[] }

/**
 * `number`: the sequence number that identifies the message among those of the sending node; absent from nodes of the
 * previous version. `except`: the connection that sent the message and does not receive it; it may have moved to
 * another node meanwhile.
 */
export interface DeliverCommand {
  op: 'deliver'
  userId: string
  to: string
  frame: string
  number?: number
  except?: string
}

/**
 * `absent`: the node has no connections of the user. `lacks`: it has none with the id or key in `to`. In both cases the
 * node promises to announce a later such connection with `enter` before that becomes ready.
 */
export interface Absence {
  absent?: boolean
  lacks?: boolean
}

/** A connection as its owner may see it. */
export interface LiveConnection {
  connectionId: string
  keyId: string
  keyName: string | null
  address: string
  client: string | null
  connectedAt: Instant
}

/** A connection that became ready or changed its key; or the id of a connection that ended, with the reason. */
export type PresenceChange = { joined: LiveConnection } | { left: string; reason: string }

/** A message from one hub to another that needs no answer; see hub/presence-feed.ts. */
export type RelayNotice =
  /**
   * Requests the changes of a user's connections on the receiving node, for half a minute. `have`: the version of that
   * node's list that the requester has; null if it has none.
   */
  | { op: 'watch'; userId: string; have: number | null }
  | { op: 'unwatch'; userId: string }
  /**
   * The changes of the list of a user's connections from version `after` to `version`; if `after` is null, the whole
   * list of the sending node. Long lists are split into several notices, of which this is `part` of `parts`.
   */
  | {
      op: 'presence'
      userId: string
      after: number | null
      version: number
      changes: PresenceChange[]
      part: number
      parts: number
    }

/**
 * Field names are part of the wire format, which adjacent versions share. `question` is the id of a request: it
 * correlates a command or a `release` with its answers. `sentAt`: when the node `from` queued the command, in
 * milliseconds of its own monotonic clock; absent from nodes of the previous version.
 */
export type RelayMessage =
  | { kind: 'order'; from: string; question: number; sentAt?: number; order: RelayCommand }
  /**
   * `held`: in the answer to a `deliver`, the number of broken connections for which the message is kept until they
   * resume; absent from nodes of the previous version.
   */
  | ({ kind: 'answer'; from: string; question: number; count: number; held?: number } & Absence)
  | { kind: 'notice'; from: string; notice: RelayNotice }
  | MoveMessage

/** The messages that move a connection to another node, where its agent resumes it; see hub/connection-moves.ts. */
export type MoveMessage =
  | ReleaseRequest
  /** One part of the released state, as JSON text. `parts` 0: the sending node does not have the connection. */
  | { kind: 'released'; from: string; question: number; part: number; parts: number; text: string }
  /** The sending node no longer awaits an answer to its `release`. */
  | { kind: 'withdrawn'; from: string; question: number }
  /** The sending node shuts down, and asks the receiver to request these connections. */
  | { kind: 'adopt'; from: string; connections: readonly ConnectionIdentity[] }
  /**
   * `leaving`: the sending node shuts down and takes over no more connections. `left`: it no longer has connections.
   */
  | { kind: 'leaving' | 'left'; from: string }

export interface ConnectionIdentity {
  connectionId: string
  userId: string
  keyId: string
}

/**
 * Requests a connection from the node that has it. `secretHash`: the hash of the secret in its resume token; null if
 * that node offered the connection with `adopt`.
 */
export interface ReleaseRequest extends ConnectionIdentity {
  kind: 'release'
  from: string
  /** The id of the request. */
  question: number
  secretHash: string | null
  lastSeq: number
}

/**
 * A message between hubs. `to` lists the node ids that it is meant for. A node id is new at every start of a
 * process, so a message recorded before a start never names the process that started.
 */
export interface RelayEvent {
  type: 'hub.relay'
  to: readonly string[]
  message: RelayMessage
}

export type Event =
  | Hint
  | RelayEvent
  /**
   * Emitted locally when events may have been lost: receivers must read the store again. Never sent to other nodes.
   */
  | { type: 'events.gap' }

/** Published only by endings/facts.ts, in the transaction of the change. */
export type SubjectEvent = Extract<Event, { type: 'api_key.changed' | 'session.ended' | 'user.changed' }>

export interface Events {
  /** Calls `listener` for all events that reach this node, its own included. Returns a function to unsubscribe. */
  subscribe(listener: (event: Event) => void): () => void
  /**
   * Publishes outside a transaction (hub relays). Within one, use `Transaction.publish`. With `to` the event is
   * published to these nodes only, each of which must have called `follow`. Nodes receive the events that they have in
   * common in the same order.
   */
  publish(event: Event, to?: readonly string[]): Promise<void>
  /**
   * Lets this process also receive the events that are published only to `nodeId`. Absent where it is the only node.
   */
  follow?(nodeId: string): Promise<void>
  /**
   * Sets whether a live node of the previous minor version exists, which cannot seal or open events. While one exists,
   * events of type `Hint` are also published and accepted unsealed (docs/decisions/0007-between-nodes.md). Absent where
   * this process is the only node.
   */
  expectUnsealed?(hasOldNode: boolean): void
}

/** Longer than any valid target: the id of a connection or key, or `all`. */
const MAX_TARGET_LENGTH = 64
/** Maximum number of connections that one command can reach; far above every limit on connections. */
const MAX_COUNT = 1_000_000
/** Length of a SHA-256 as base64url. */
const HASH_LENGTH = 43
/** Maximum number of parts in which the state of a moving connection is sent. */
export const MAX_MOVE_PARTS = 64
/** Maximum length of the text of one part. */
export const MAX_MOVE_PART_LENGTH = 128 * 1024
/** Maximum number of connections in one `adopt`. */
export const MAX_ADOPTED = 50

/** A hint with valid fields and no others, or null. */
export function parseHint(value: unknown): Hint | null {
  const fields = toFields(value)
  const userId = toId(fields.userId)
  switch (fields.type) {
    case 'api_key.changed': {
      const keyId = toId(fields.keyId)
      return keyId && userId ? { type: fields.type, keyId, userId } : null
    }
    case 'session.ended': {
      const sessionId = toId(fields.sessionId)
      return sessionId && userId ? { type: fields.type, sessionId, userId } : null
    }
    case 'user.changed':
      return userId ? { type: fields.type, userId } : null
    case 'mail.queued':
    case 'logout_notice.queued':
    case 'webhook.queued':
    case 'webhooks.changed':
    case 'signing_keys.changed':
    case 'policies.changed':
    case 'api_keys.imported':
      return { type: fields.type }
    default:
      return null
  }
}

/** An event with valid fields and no others, or null if no node publishes such a value. */
export function parseEvent(value: unknown): Hint | RelayEvent | null {
  const { type, to, message } = toFields(value)
  if (type !== 'hub.relay') return parseHint(value)
  const parsedMessage = parseMessage(message)
  if (!parsedMessage || !Array.isArray(to) || !to.every(id => typeof id === 'string')) return null
  return { type, to, message: parsedMessage }
}

function parseMessage(value: unknown): RelayMessage | null {
  const {
    kind,
    from: sender,
    question: requestId,
    sentAt,
    order,
    count,
    held,
    absent,
    lacks,
    notice: rawNotice,
  } = toFields(value)
  const from = toId(sender)
  if (!from) return null
  if (kind === 'notice') {
    const notice = parseNotice(rawNotice)
    return notice && { kind, from, notice }
  }
  if (kind === 'leaving' || kind === 'left') return { kind, from }
  if (kind === 'adopt') return parseAdopt(from, value)
  if (!isCount(requestId, Number.MAX_SAFE_INTEGER)) return null
  if (kind === 'answer') {
    if (!isCount(count, MAX_COUNT)) return null
    const optionalHeld = isCount(held, MAX_COUNT) ? { held } : {}
    return {
      kind,
      from,
      question: requestId,
      count,
      ...optionalHeld,
      absent: absent === true,
      lacks: lacks === true,
    }
  }
  if (kind === 'withdrawn') return { kind, from, question: requestId }
  if (kind === 'release' || kind === 'released') return parseMove(kind, from, requestId, value)
  const command = kind === 'order' ? parseCommand(order) : null
  const optionalSentAt = isCount(sentAt, Number.MAX_SAFE_INTEGER) ? { sentAt } : {}
  return command && { kind: 'order', from, question: requestId, ...optionalSentAt, order: command }
}

function parseAdopt(from: string, value: unknown): RelayMessage | null {
  const { connections } = toFields(value)
  if (!Array.isArray(connections) || connections.length > MAX_ADOPTED) return null
  const identities = connections.map(parseConnectionIdentity).filter(identity => identity !== null)
  return { kind: 'adopt', from, connections: identities }
}

function parseMove(
  kind: 'release' | 'released',
  from: string,
  requestId: number,
  value: unknown,
): RelayMessage | null {
  const { secretHash, lastSeq, part, parts, text } = toFields(value)
  if (kind === 'released') {
    if (!isCount(parts, MAX_MOVE_PARTS) || !isCount(part, MAX_MOVE_PARTS) || typeof text !== 'string')
      return null
    return { kind, from, question: requestId, part, parts, text }
  }
  const identity = parseConnectionIdentity(value)
  const isHash = secretHash === null || (typeof secretHash === 'string' && secretHash.length === HASH_LENGTH)
  if (!identity || !isHash || !isCount(lastSeq, Number.MAX_SAFE_INTEGER)) return null
  return { kind, from, question: requestId, ...identity, secretHash: secretHash as string | null, lastSeq }
}

function parseConnectionIdentity(value: unknown): ConnectionIdentity | null {
  const fields = toFields(value)
  const [connectionId, userId, keyId] = [toId(fields.connectionId), toId(fields.userId), toId(fields.keyId)]
  return connectionId && userId && keyId ? { connectionId, userId, keyId } : null
}

function parseCommand(value: unknown): RelayCommand | null {
  const {
    op,
    userId: owner,
    userIds,
    targets,
    to,
    target,
    frame,
    number,
    except,
    relayVersion,
  } = toFields(value)
  if (op === 'ping') return isCount(relayVersion, MAX_COUNT) ? { op, relayVersion } : { op }
  if (op === 'enter' && Array.isArray(userIds)) {
    const [owners, receivers] = [userIds, Array.isArray(targets) ? targets : []].map(ids => ids.map(toId))
    return [...owners!, ...receivers!].includes(null)
      ? null
      : { op, userIds: owners as string[], targets: receivers as string[] }
  }
  const userId = toId(owner)
  if (!userId) return null
  if (op === 'deliver' && isTarget(to) && typeof frame === 'string') {
    return {
      ...{ op, userId, to, frame },
      ...(isCount(number, Number.MAX_SAFE_INTEGER) ? { number } : {}),
      ...(isTarget(except) ? { except } : {}),
    }
  }
  if (op === 'disconnect' && isTarget(target)) return { op, userId, target }
  return null
}

function parseNotice(value: unknown): RelayNotice | null {
  const { op, userId: owner, have, after, version, changes, part, parts } = toFields(value)
  const userId = toId(owner)
  if (!userId) return null
  if (op === 'unwatch') return { op, userId }
  if (op === 'watch') return have === null || isSafeCount(have) ? { op, userId, have } : null
  if (op !== 'presence' || !(after === null || isSafeCount(after)) || !isSafeCount(version)) return null
  if (!Array.isArray(changes) || !isSafeCount(part) || !isSafeCount(parts)) return null
  const parsedChanges = changes.map(parseChange)
  if (parsedChanges.includes(null)) return null
  return { op, userId, after, version, changes: parsedChanges as PresenceChange[], part, parts }
}

function parseChange(value: unknown): PresenceChange | null {
  const { joined, left, reason } = toFields(value)
  const leftId = toId(left)
  if (leftId) return typeof reason === 'string' ? { left: leftId, reason } : null
  const { connectionId: id, keyId: key, keyName, address, client, connectedAt } = toFields(joined)
  const [connectionId, keyId] = [toId(id), toId(key)]
  if (!connectionId || !keyId || !isTextOrNull(keyName) || !isTextOrNull(client)) return null
  if (typeof address !== 'string' || !isSafeCount(connectedAt)) return null
  return { joined: { connectionId, keyId, keyName, address, client, connectedAt } }
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

function isSafeCount(value: unknown): value is number {
  return isCount(value, Number.MAX_SAFE_INTEGER)
}

function toFields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function toId(value: unknown): string | null {
  return typeof value === 'string' ? parseId(value) : null
}

function isTarget(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TARGET_LENGTH
}

function isCount(value: unknown, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max
}
