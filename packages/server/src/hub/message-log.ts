import { newTextFrame } from './text-frame.ts'

/** Messages kept for one connection, so that it can be resumed. */
export const MAX_KEPT_MESSAGES = 256
const MIB = 1024 * 1024
const MAX_KEPT_BYTES = MIB
/** The same for all connections of this node. */
export const MAX_NODE_BYTES = 64 * MIB
/** Estimated memory of a message besides its text, and of each reference to it. */
const MESSAGE_BYTES = 256
const REFERENCE_BYTES = 16
/** What the JSON of `encodeMessage` begins with; the number of the message is inserted after it. */
const FRAME_HEAD = '{"type":"message"'
/** What follows it in a message of an agent. */
const SENDER = /^,"id":"(?:[^"\\]|\\.)*","from":"([0-9a-f-]{36})"/
const MAX_SENDER_END = 1024
/** Additional length of a numbered frame: `,"seq":` and a safe integer. */
export const MAX_SEQ_BYTES = 24

/** A message to any number of connections of this node, in memory once. */
export class KeptMessage {
  /** The JSON without FRAME_HEAD. */
  readonly rest: Buffer
  /** Names the message among those of all nodes. */
  readonly origin: string
  /** Number of logs that contain it. */
  keepers = 0

  /** @param frame an encoded `message` without a number */
  constructor(frame: string, origin: string) {
    const rest = frame.slice(FRAME_HEAD.length)
    // Not from the shared pool, of which one kept message would retain a whole slab.
    this.rest = Buffer.allocUnsafeSlow(Buffer.byteLength(rest))
    this.rest.write(rest)
    this.origin = origin
  }

  /** The JSON without a number, as nodes send it to each other. */
  get frame(): string {
    return FRAME_HEAD + this.rest.toString()
  }

  /** The sending connection; null for messages over HTTP. */
  get sender(): string | null {
    return SENDER.exec(this.rest.toString('latin1', 0, MAX_SENDER_END))?.[1] ?? null
  }

  /** The frame of RFC 6455 as a connection gets it. */
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
 * The memory for messages on this node. An owner may have at most half of what the others leave free: one leaves half
 * of it to others, and even ten do not fill it.
 */
export class MessageBudget {
  #total = 0
  #owners = new Map<string, OwnerBytes>()
  readonly #max: number

  constructor(max = MAX_NODE_BYTES) {
    this.#max = max
  }

  /** Bytes in use. */
  get total(): number {
    return this.#total
  }

  of(userId: string): OwnerBytes {
    return this.#owners.get(userId) ?? { userId, bytes: 0 }
  }

  /** False if there is no room. */
  take(owner: OwnerBytes, bytes: number): boolean {
    if (owner.bytes + bytes > (this.#max - this.#total + owner.bytes) / 2) return false
    if (owner.bytes === 0) this.#owners.set(owner.userId, owner)
    owner.bytes += bytes
    this.#total += bytes
    return true
  }

  give(owner: OwnerBytes, bytes: number): void {
    owner.bytes -= bytes
    this.#total -= bytes
    if (owner.bytes === 0) this.#owners.delete(owner.userId)
  }
}

/**
 * Numbers the messages of one connection, and keeps the last of them until the agent has certainly received them. What
 * is kept has no gaps and ends with the last message.
 */
export class MessageLog {
  /** The number of the last message. */
  seq: number
  /** The nodes that it was on, with the number of each node's last message then: those are in it already. */
  passed: readonly [nodeId: string, number: number][] | null = null
  readonly #userId: string
  readonly #budget: MessageBudget
  /** Null while nothing is kept, as for most connections. */
  #kept: KeptMessage[] | null = null
  /** Null while nothing is kept. */
  #owner: OwnerBytes | null = null
  #bytes = 0

  constructor(userId: string, budget: MessageBudget, seq = 0) {
    this.#userId = userId
    this.#budget = budget
    this.seq = seq
  }

  /** Whether a node that it was on had sent this message by then. */
  hasPassed({ origin }: KeptMessage): boolean {
    const [node, number] = origin.split(':')
    return this.passed?.some(([each, last]) => each === node && Number(number) <= last) ?? false
  }

  /** The number of the last message that is not kept any more. */
  get floor(): number {
    return this.seq - (this.#kept?.length ?? 0)
  }

  /** Numbers and keeps a message; the oldest ones are forgotten when there are too many. Returns its number. */
  add(message: KeptMessage): number {
    this.seq++
    const { length } = message.rest
    const kept = this.#kept
    let surplus = kept && kept.length >= MAX_KEPT_MESSAGES ? 1 : 0
    for (let bytes = this.#bytes + length; bytes > MAX_KEPT_BYTES && surplus < (kept?.length ?? 0); surplus++)
      bytes -= kept![surplus]!.rest.length
    if (surplus > 0) this.#drop(surplus)
    if (!this.#keep(message)) this.clear()
    return this.seq
  }

  /** Whether everything after the message of this number is kept. */
  reaches(seq: number): boolean {
    return seq >= this.floor && seq <= this.seq
  }

  /** The kept messages after the one of this number. */
  after(seq: number): KeptMessage[] {
    return this.#kept?.slice(Math.max(0, seq - this.floor)) ?? []
  }

  /** Forgets the messages up to this number, which the agent has received. */
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
    const cost = REFERENCE_BYTES + (message.keepers === 0 ? MESSAGE_BYTES + length : 0)
    if (!this.#budget.take(owner, cost)) return false
    this.#owner = owner
    message.keepers++
    this.#bytes += length
    if (this.#kept) this.#kept.push(message)
    else this.#kept = [message]
    return true
  }

  #drop(count: number): void {
    let freed = 0
    for (const message of this.#kept!.splice(0, count)) {
      const { length } = message.rest
      freed += REFERENCE_BYTES + (--message.keepers === 0 ? MESSAGE_BYTES + length : 0)
      this.#bytes -= length
    }
    this.#budget.give(this.#owner!, freed)
    if (this.#kept!.length > 0) return
    this.#kept = null
    this.#owner = null
  }
}
