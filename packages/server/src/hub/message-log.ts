import { newTextFrame } from './text-frame.ts'

/** Maximum number of messages kept for one connection, so that it can be resumed. */
export const MAX_KEPT_MESSAGES = 256
const MIB = 1024 * 1024
const MAX_KEPT_BYTES = MIB
/** Maximum size of the messages kept for all connections of this node. */
export const MAX_NODE_BYTES = 64 * MIB
/** Estimated memory in bytes of a kept message besides its text, and of its entry in the log of each connection. */
const MESSAGE_BYTES = 256
const REFERENCE_BYTES = 16
/** The beginning of the JSON that `encodeMessage` returns; the sequence number is inserted after it. */
const FRAME_HEAD = '{"type":"message"'
/**
 * The text after FRAME_HEAD in a message of an agent, up to the id of the sending connection, which ends within
 * MAX_SENDER_END bytes.
 */
const SENDER_PATTERN = /^,"id":"(?:[^"\\]|\\.)*","from":"([0-9a-f-]{36})"/
const MAX_SENDER_END = 1024
/** Bytes of a frame that are reserved for its sequence number: more than the 23 of `,"seq":` and 16 digits. */
export const MAX_SEQ_BYTES = 24

/** A message to any number of connections of this node, which share it in memory. */
export class KeptMessage {
  /** The JSON without FRAME_HEAD. */
  readonly rest: Buffer
  /** Identifies the message among those of all nodes. */
  readonly origin: string
  /** Number of logs that contain the message. */
  logCount = 0

  /** @param frame an encoded `message` without a sequence number */
  constructor(frame: string, origin: string) {
    const rest = frame.slice(FRAME_HEAD.length)
    // A buffer of its own: in Node's shared pool one kept message would retain a whole slab.
    this.rest = Buffer.allocUnsafeSlow(Buffer.byteLength(rest))
    this.rest.write(rest)
    this.origin = origin
  }

  /** The JSON without a sequence number, as nodes relay it. */
  get frame(): string {
    return FRAME_HEAD + this.rest.toString()
  }

  /** The id of the sending connection; null for messages over HTTP. */
  get sender(): string | null {
    return SENDER_PATTERN.exec(this.rest.toString('latin1', 0, MAX_SENDER_END))?.[1] ?? null
  }

  /** The message as a frame of RFC 6455, with the sequence number that it has on one connection. */
  numbered(seq: number): Buffer {
    const head = `${FRAME_HEAD},"seq":${seq}`
    const length = head.length + this.rest.length
    const frame = newTextFrame(length)
    frame.write(head, frame.length - length, 'latin1')
    this.rest.copy(frame, frame.length - this.rest.length)
    return frame
  }
}

interface OwnerBytes {
  userId: string
  bytes: number
}

/**
 * The memory for kept messages on this node. An owner may use at most half of the memory that others do not use. So one
 * owner leaves at least half of it to others, and even ten owners do not fill it.
 */
export class MessageBudget {
  #total = 0
  /** By user id. */
  #owners = new Map<string, OwnerBytes>()
  readonly #max: number

  constructor(max = MAX_NODE_BYTES) {
    this.#max = max
  }

  /** Bytes that all owners use. */
  get total(): number {
    return this.#total
  }

  /** The number of bytes that an owner uses, as an object that `reserve` and `release` update. */
  of(userId: string): OwnerBytes {
    return this.#owners.get(userId) ?? { userId, bytes: 0 }
  }

  /** Adds to the bytes of an owner. Returns false, and adds nothing, if that would exceed what the owner may use. */
  reserve(owner: OwnerBytes, bytes: number): boolean {
    if (owner.bytes + bytes > (this.#max - this.#total + owner.bytes) / 2) return false
    if (owner.bytes === 0) this.#owners.set(owner.userId, owner)
    owner.bytes += bytes
    this.#total += bytes
    return true
  }

  release(owner: OwnerBytes, bytes: number): void {
    owner.bytes -= bytes
    this.#total -= bytes
    if (owner.bytes === 0) this.#owners.delete(owner.userId)
  }
}

/**
 * Numbers the messages of one connection, and keeps the latest until the agent has acknowledged them by a pong. The
 * kept messages are consecutive, up to the last one.
 */
export class MessageLog {
  /** The sequence number of the last message. */
  seq: number
  /**
   * The nodes that the connection was on before, each with the number of that node's last message when the connection
   * left it. The log already contains the messages of that node up to this number. Null if it was on no other node.
   */
  leftNodes: readonly [nodeId: string, number: number][] | null = null
  readonly #userId: string
  readonly #budget: MessageBudget
  /** Null while nothing is kept, which is usual. */
  #kept: KeptMessage[] | null = null
  /** Null while nothing is kept. */
  #owner: OwnerBytes | null = null
  #bytes = 0

  constructor(userId: string, budget: MessageBudget, seq = 0) {
    this.#userId = userId
    this.#budget = budget
    this.seq = seq
  }

  /** Whether the message was sent by an earlier node of the connection, while the connection was on that node. */
  wasSentBeforeMove({ origin }: KeptMessage): boolean {
    const [node, number] = origin.split(':')
    return this.leftNodes?.some(([each, last]) => each === node && Number(number) <= last) ?? false
  }

  /** The sequence number of the last message that is no longer kept. */
  get floor(): number {
    return this.seq - (this.#kept?.length ?? 0)
  }

  /**
   * Numbers and keeps a message, and drops the oldest ones if there are too many. If the memory for kept messages is
   * used up, drops all of them, this one included. Returns its sequence number.
   */
  add(message: KeptMessage): number {
    this.seq++
    const { length } = message.rest
    const keptMessages = this.#kept
    let surplus = keptMessages && keptMessages.length >= MAX_KEPT_MESSAGES ? 1 : 0
    for (
      let bytes = this.#bytes + length;
      bytes > MAX_KEPT_BYTES && surplus < (keptMessages?.length ?? 0);
      surplus++
    )
      bytes -= keptMessages![surplus]!.rest.length
    if (surplus > 0) this.#drop(surplus)
    if (!this.#keep(message)) this.clear()
    return this.seq
  }

  /** Whether everything after this sequence number is kept; false for a number that no message has had yet. */
  keepsAllAfter(seq: number): boolean {
    return seq >= this.floor && seq <= this.seq
  }

  after(seq: number): KeptMessage[] {
    return this.#kept?.slice(Math.max(0, seq - this.floor)) ?? []
  }

  /** Drops messages up to this sequence number, which the agent has received. */
  forget(upTo: number): void {
    const count = Math.min(upTo - this.floor, this.#kept?.length ?? 0)
    if (count > 0) this.#drop(count)
  }

  clear(): void {
    if (this.#kept) this.#drop(this.#kept.length)
  }

  #keep(message: KeptMessage): boolean {
    const owner = this.#owner ?? this.#budget.of(this.#userId)
    const { length } = message.rest
    const cost = REFERENCE_BYTES + (message.logCount === 0 ? MESSAGE_BYTES + length : 0)
    if (!this.#budget.reserve(owner, cost)) return false
    this.#owner = owner
    message.logCount++
    this.#bytes += length
    if (this.#kept) this.#kept.push(message)
    else this.#kept = [message]
    return true
  }

  #drop(count: number): void {
    let freedBytes = 0
    for (const message of this.#kept!.splice(0, count)) {
      const { length } = message.rest
      freedBytes += REFERENCE_BYTES + (--message.logCount === 0 ? MESSAGE_BYTES + length : 0)
      this.#bytes -= length
    }
    this.#budget.release(this.#owner!, freedBytes)
    if (this.#kept!.length > 0) return
    this.#kept = null
    this.#owner = null
  }
}
