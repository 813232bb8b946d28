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
  /** An account was suspended, activated or deleted. */
  | { type: 'user.changed'; userId: string }
  /** Mail was queued. */
  | { type: 'mail.queued' }
  /** An app must be told that a session ended. */
  | { type: 'logout_notice.queued' }
  /** Events wait for endpoints. */
  | { type: 'webhook.queued' }
  /** An endpoint was created, changed or removed. */
  | { type: 'webhooks.changed' }
  | { type: 'signing_keys.changed' }
  | { type: 'policies.changed' }
  /** Keys of another system were imported. */
  | { type: 'api_keys.imported' }

/** A command of one hub to others; see hub/node-relay.ts. */
export type RelayCommand =
  | DeliverCommand
  | { op: 'disconnect'; userId: string; target: string }
  /** Has no effect but its answer, which arrives after all that the asked node had published before. */
  | { op: 'ping'; relayVersion?: number }
  /**
   * The sender has connections of these users; see hub/locations.ts. `targets`: ids and keys of theirs that it has too, though it
   * answered that it had none; see hub/receivers.ts.
   */
  | { op: 'enter'; userIds: readonly string[]; targets?: readonly string[] }

/**
 * `number`: the sequence number of the message on its node, which identifies it; absent from nodes of the previous
 * version. `except`: the sender's connection, which may move meanwhile.
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
 * `absent`: the node has no connections of the user. `lacks`: it has none that the message names. Either way it
 * announces new ones before they are ready.
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

/** A connection that became ready or changed its key; or the id of one that is gone, with the reason. */
export type PresenceChange = { joined: LiveConnection } | { left: string; reason: string }

/** A message of one hub to another without an answer; see hub/presence-feed.ts. */
export type RelayNotice =
  /** Asks for the changes of a user's connections, for half a minute; `have` is the version known already. */
  | { op: 'watch'; userId: string; have: number | null }
  | { op: 'unwatch'; userId: string }
  /**
   * Changes that lead from version `after` to `version`. With `after` null all connections of the user on the sending node,
   * in several notices: `part` of `parts`.
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
 * Field names are part of the wire format, which adjacent versions share. `question` is the id that correlates a
 * command and its answer.
 */
export type RelayMessage =
  | { kind: 'order'; from: string; question: number; order: RelayCommand }
  /** `held`: of a `deliver`, for how many broken connections it is kept; absent from nodes of the previous version. */
  | ({ kind: 'answer'; from: string; question: number; count: number; held?: number } & Absence)
  | { kind: 'notice'; from: string; notice: RelayNotice }
  | MoveMessage

/** How a connection moves to another node, where its agent resumes it; see hub/connection-moves.ts. */
export type MoveMessage =
  | ReleaseMessage
  /** One part of the released state, as JSON text. `parts` 0: the connection is not on this node. */
  | { kind: 'released'; from: string; question: number; part: number; parts: number; text: string }
  /** The sending node no longer awaits an answer to its `release`. */
  | { kind: 'withdrawn'; from: string; question: number }
  /** The sending node shuts down, and asks the receiver to request these connections. */
  | { kind: 'adopt'; from: string; connections: readonly ConnectionIdentity[] }
  /** The sending node shuts down: it takes over no connections; once it has `left` it has none any more. */
  | { kind: 'leaving' | 'left'; from: string }

export interface ConnectionIdentity {
  connectionId: string
  userId: string
  keyId: string
}

/**
 * Requests a connection from the node that has it. `secretHash`: of its resume token; null if that node offered the
 * connection before its shutdown.
 */
export interface ReleaseMessage extends ConnectionIdentity {
  kind: 'release'
  from: string
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
  /** Calls `listener` for every event of every node, this one included. Returns a function to unsubscribe. */
  subscribe(listener: (event: Event) => void): () => void
  /**
   * Publishes outside a transaction (hub relays). Within one, use `Transaction.publish`. With `to` it is published to these
   * nodes only, which must follow their own channels. All nodes receive events that concern two of them in the same order.
   */
  publish(event: Event, to?: readonly string[]): Promise<void>
  /** Receives from now on also what is published to this node. Absent where this process is the only one. */
  follow?(nodeId: string): Promise<void>
  /**
   * Whether a live node of the previous minor version exists, which cannot seal or open events. While one does, hints
   * are exchanged with it unsealed (decision 7). Absent where this process is the only node.
   */
  expectUnsealed?(isListed: boolean): void
}

/** Longer than any valid target: the id of a connection or key, or `all`. */
const MAX_TARGET_LENGTH = 64
/** Maximum number of connections that one command can reach; far above all limits. */
const MAX_COUNT = 1_000_000
/** A SHA-256 as base64url. */
const HASH_LENGTH = 43
/** Maximum number of parts of a moving connection, of the text of each, and of connections in one `adopt`. */
export const MAX_MOVE_PARTS = 64
export const MAX_MOVE_PART_LENGTH = 128 * 1024
export const MAX_ADOPTED = 50

/** A hint with valid fields and no others, or null. */
export function parseHint(value: unknown): Hint | null {
  const fields = toFields(value)
  const userId = idIn(fields.userId)
  switch (fields.type) {
    case 'api_key.changed': {
      const keyId = idIn(fields.keyId)
      return keyId && userId ? { type: fields.type, keyId, userId } : null
    }
    case 'session.ended': {
      const sessionId = idIn(fields.sessionId)
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
  const parsed = parseMessage(message)
  if (!parsed || !Array.isArray(to) || !to.every(id => typeof id === 'string')) return null
  return { type, to, message: parsed }
}

function parseMessage(value: unknown): RelayMessage | null {
  const { kind, from: sender, question, order, count, held, absent, lacks, notice: noticed } = toFields(value)
  const from = idIn(sender)
  if (!from) return null
  if (kind === 'notice') {
    const notice = parseNotice(noticed)
    return notice && { kind, from, notice }
  }
  if (kind === 'leaving' || kind === 'left') return { kind, from }
  if (kind === 'adopt') return parseAdopt(from, value)
  if (!isWhole(question, Number.MAX_SAFE_INTEGER)) return null
  if (kind === 'answer') {
    if (!isWhole(count, MAX_COUNT)) return null
    const kept = isWhole(held, MAX_COUNT) ? { held } : {}
    return { kind, from, question, count, ...kept, absent: absent === true, lacks: lacks === true }
  }
  if (kind === 'withdrawn') return { kind, from, question }
  if (kind === 'release' || kind === 'released') return parseMove(kind, from, question, value)
  const parsed = kind === 'order' ? parseCommand(order) : null
  return parsed && { kind: 'order', from, question, order: parsed }
}

function parseAdopt(from: string, value: unknown): RelayMessage | null {
  const { connections } = toFields(value)
  if (!Array.isArray(connections) || connections.length > MAX_ADOPTED) return null
  const names = connections.map(parseConnectionName).filter(name => name !== null)
  return { kind: 'adopt', from, connections: names }
}

function parseMove(
  kind: 'release' | 'released',
  from: string,
  question: number,
  value: unknown,
): RelayMessage | null {
  const { secretHash, lastSeq, part, parts, text } = toFields(value)
  if (kind === 'released') {
    if (!isWhole(parts, MAX_MOVE_PARTS) || !isWhole(part, MAX_MOVE_PARTS) || typeof text !== 'string')
      return null
    return { kind, from, question, part, parts, text }
  }
  const name = parseConnectionName(value)
  const isHash = secretHash === null || (typeof secretHash === 'string' && secretHash.length === HASH_LENGTH)
  if (!name || !isHash || !isWhole(lastSeq, Number.MAX_SAFE_INTEGER)) return null
  return { kind, from, question, ...name, secretHash: secretHash as string | null, lastSeq }
}

function parseConnectionName(value: unknown): ConnectionIdentity | null {
  const fields = toFields(value)
  const [connectionId, userId, keyId] = [idIn(fields.connectionId), idIn(fields.userId), idIn(fields.keyId)]
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
  if (op === 'ping') return isWhole(relayVersion, MAX_COUNT) ? { op, relayVersion } : { op }
  if (op === 'enter' && Array.isArray(userIds)) {
    const [ids, found] = [userIds, Array.isArray(targets) ? targets : []].map(each => each.map(idIn))
    return [...ids!, ...found!].includes(null)
      ? null
      : { op, userIds: ids as string[], targets: found as string[] }
  }
  const userId = idIn(owner)
  if (!userId) return null
  if (op === 'deliver' && isTarget(to) && typeof frame === 'string') {
    return {
      ...{ op, userId, to, frame },
      ...(isWhole(number, Number.MAX_SAFE_INTEGER) ? { number } : {}),
      ...(isTarget(except) ? { except } : {}),
    }
  }
  if (op === 'disconnect' && isTarget(target)) return { op, userId, target }
  return null
}

function parseNotice(value: unknown): RelayNotice | null {
  const { op, userId: owner, have, after, version, changes, part, parts } = toFields(value)
  const userId = idIn(owner)
  if (!userId) return null
  if (op === 'unwatch') return { op, userId }
  if (op === 'watch') return have === null || isNumber(have) ? { op, userId, have } : null
  if (op !== 'presence' || !(after === null || isNumber(after)) || !isNumber(version)) return null
  if (!Array.isArray(changes) || !isNumber(part) || !isNumber(parts)) return null
  const parsed = changes.map(parseChange)
  if (parsed.includes(null)) return null
  return { op, userId, after, version, changes: parsed as PresenceChange[], part, parts }
}

function parseChange(value: unknown): PresenceChange | null {
  const { joined, left: gone, reason } = toFields(value)
  const left = idIn(gone)
  if (left) return typeof reason === 'string' ? { left, reason } : null
  const { connectionId: id, keyId: key, keyName, address, client, connectedAt } = toFields(joined)
  const [connectionId, keyId] = [idIn(id), idIn(key)]
  if (!connectionId || !keyId || !isTextOrNull(keyName) || !isTextOrNull(client)) return null
  if (typeof address !== 'string' || !isNumber(connectedAt)) return null
  return { joined: { connectionId, keyId, keyName, address, client, connectedAt } }
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

function isNumber(value: unknown): value is number {
  return isWhole(value, Number.MAX_SAFE_INTEGER)
}

function toFields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function idIn(value: unknown): string | null {
  return typeof value === 'string' ? parseId(value) : null
}

function isTarget(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TARGET_LENGTH
}

function isWhole(value: unknown, most: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most
}
