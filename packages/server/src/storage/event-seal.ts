import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { SECRET_ID_BYTES, type Secrets } from '../secrets.ts'
import { SeenCounters } from './seen-counters.ts'

/*
 * The format of a sealed part of an event, encrypted and authenticated by AES-256-GCM (lengths in bytes):
 *
 *   1 version | 4 secret id | 16 sender id | 6 counter | encrypted(6 sealed at | 2 index | 2 count | text) | 16 tag
 *
 * The nonce is the counter. It never repeats under one key, since each start of a process has a random sender id, from
 * which its key is derived. The channel's name and all fields before the encrypted ones are authenticated too.
 */
const FORMAT_VERSION = 1
const SENDER_BYTES = 16
const COUNTER_BYTES = 6
const SENDER_OFFSET = 1 + SECRET_ID_BYTES
const COUNTER_OFFSET = SENDER_OFFSET + SENDER_BYTES
const HEADER_BYTES = COUNTER_OFFSET + COUNTER_BYTES
const PART_HEADER_BYTES = 10
const TAG_BYTES = 16
const NONCE_BYTES = 12
const OVERHEAD_BYTES = HEADER_BYTES + PART_HEADER_BYTES + TAG_BYTES
/**
 * Maximum size of an event: several times that of a message frame (64 KiB), which is escaped as JSON and sent with the
 * ids of its receiving nodes.
 */
const MAX_EVENT_BYTES = 1024 * 1024
/** The size of the largest event once sealed, for a transport that needs no parts. */
export const MAX_SEALED_BYTES = MAX_EVENT_BYTES + OVERHEAD_BYTES
/**
 * Maximum difference between the time at which an accepted event was sealed and the receiver's time. Allows for late
 * delivery, and for differences between the nodes' clocks.
 */
const MAX_AGE_MS = 60_000
/**
 * How long a sender's counters are kept after its last event: for as long as one of its events could be accepted, since
 * without the counters a replayed event would look like a new one.
 */
const SENDER_RETENTION_MS = 2 * MAX_AGE_MS
/** Maximum number of processes, commands included, that send events within two minutes. Each entry takes about 3 KB. */
const MAX_SENDERS = 1000

/** Why an event was not accepted; a label of `keyway_events_rejected_total`. */
export type Rejection =
  /** Not in the format of a sealed part, or too long. */
  | 'malformed'
  /** Sealed under a secret that this node's KEYWAY_SECRET does not list. */
  | 'unknown_secret'
  /** Forged or changed. */
  | 'not_authentic'
  | 'replayed'
  /** Sealed more than a minute before or after the receiver's time. */
  | 'stale'
  /** A part whose predecessors did not arrive. */
  | 'incomplete'
  /** Authentic, but not an event known to this version. */
  | 'invalid'
  /** From a sender beyond MAX_SENDERS, or an unsealed hint beyond the maximum of unsealed-hints.ts. */
  | 'too_many'
  /** Received without a seal, and not a hint. */
  | 'unsealed'

/** `part`: the part is authentic, and the event is not complete yet. */
export type OpenResult = { value: unknown } | { rejected: Rejection } | 'part'

interface Sender {
  key: Buffer
  seen: SeenCounters
  /** Time of the last event, in milliseconds of the local monotonic clock. */
  lastAt: number
  assembly: { nextIndex: number; nextCounter: number; parts: Buffer[] } | null
}

export interface EventSeal {
  /** The sealed parts of an event, to be sent in this order. @throws Error for an event of more than 1 MiB */
  seal(event: object): Buffer[]
  /** Opens a part that was sealed under any configured secret. Each part opens only once. Never throws. */
  open(sealed: Buffer): OpenResult
}

/**
 * Seals the events of this process under the first secret, and opens those of all processes under any listed one.
 *
 * @param deps.now the time that all nodes agree on (the database's), in milliseconds
 */
export function createEventSeal(deps: {
  secrets: Pick<Secrets, 'deriveKey' | 'fingerprint'>
  channel: string
  maxPartBytes: number
  now(): number
}): EventSeal {
  const { secrets, maxPartBytes, now } = deps
  const channel = Buffer.from(deps.channel)
  const ownId = randomBytes(SENDER_BYTES)
  const ownKey = secrets.deriveKey('event', ownId)!
  const header = Buffer.alloc(HEADER_BYTES)
  header[0] = FORMAT_VERSION
  header.write(secrets.fingerprint, 1, 'hex')
  ownId.copy(header, SENDER_OFFSET)
  /** Senders of authentic events, by the fingerprint of their secret and their id. */
  const senders = new Map<string, Sender>()
  let counter = 0

  return {
    seal(event) {
      const text = Buffer.from(JSON.stringify(event))
      if (text.length > MAX_EVENT_BYTES) throw new Error(`an event of ${text.length} bytes is too long`)
      const textBytesPerPart = maxPartBytes - OVERHEAD_BYTES
      const count = Math.max(1, Math.ceil(text.length / textBytesPerPart))
      return Array.from({ length: count }, (_, index) =>
        sealPart(text.subarray(index * textBytesPerPart, (index + 1) * textBytesPerPart), index, count),
      )
    },
    open(sealed) {
      try {
        return open(sealed)
      } catch {
        return { rejected: 'malformed' }
      }
    },
  }

  function sealPart(text: Buffer, index: number, count: number): Buffer {
    const sealed = Buffer.allocUnsafe(OVERHEAD_BYTES + text.length)
    header.writeUIntBE(counter++, COUNTER_OFFSET, COUNTER_BYTES)
    header.copy(sealed)
    const partHeader = Buffer.allocUnsafe(PART_HEADER_BYTES)
    partHeader.writeUIntBE(Math.max(0, Math.round(now())), 0, 6)
    partHeader.writeUInt16BE(index, 6)
    partHeader.writeUInt16BE(count, 8)
    const cipher = createCipheriv('aes-256-gcm', ownKey, nonceOf(header))
    cipher.setAAD(Buffer.concat([channel, header]))
    cipher.update(partHeader).copy(sealed, HEADER_BYTES)
    cipher.update(text).copy(sealed, HEADER_BYTES + PART_HEADER_BYTES)
    cipher.final()
    cipher.getAuthTag().copy(sealed, sealed.length - TAG_BYTES)
    return sealed
  }

  function open(sealed: Buffer): OpenResult {
    if (sealed.length < OVERHEAD_BYTES || sealed.length > maxPartBytes || sealed[0] !== FORMAT_VERSION)
      return { rejected: 'malformed' }
    const senderName = sealed.toString('latin1', 1, COUNTER_OFFSET)
    const knownSender = senders.get(senderName)
    const eventCounter = sealed.readUIntBE(COUNTER_OFFSET, COUNTER_BYTES)
    if (knownSender && !knownSender.seen.isNew(eventCounter)) return { rejected: 'replayed' }
    const key = knownSender?.key ?? deriveSenderKey(sealed)
    if (!key) return { rejected: 'unknown_secret' }
    const plaintext = decrypt(key, sealed)
    if (!plaintext) return { rejected: 'not_authentic' }
    if (Math.abs(now() - plaintext.readUIntBE(0, 6)) > MAX_AGE_MS) return { rejected: 'stale' }
    const sender = knownSender ?? addSender(senderName, key)
    if (!sender) return { rejected: 'too_many' }
    sender.seen.add(eventCounter)
    sender.lastAt = performance.now()
    return assemble(sender, eventCounter, plaintext)
  }

  /**
   * Derives the key of an unknown sender; null if KEYWAY_SECRET does not list the secret that the event names. The key
   * is cached only once an event of the sender was authenticated, so that forged events use no memory.
   */
  function deriveSenderKey(sealed: Buffer): Buffer | null {
    return secrets.deriveKey(
      'event',
      sealed.subarray(SENDER_OFFSET, COUNTER_OFFSET),
      sealed.toString('hex', 1, SENDER_OFFSET),
    )
  }

  function decrypt(key: Buffer, sealed: Buffer): Buffer | null {
    const sealedHeader = sealed.subarray(0, HEADER_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(sealedHeader), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.concat([channel, sealedHeader]))
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    const plaintext = decipher.update(sealed.subarray(HEADER_BYTES, -TAG_BYTES))
    try {
      decipher.final()
      return plaintext
    } catch {
      return null
    }
  }

  /** Adds a sender whose event was authenticated. Returns null if there are too many. */
  function addSender(name: string, key: Buffer): Sender | null {
    const retainedFrom = performance.now() - SENDER_RETENTION_MS
    for (const [each, { lastAt }] of senders) if (lastAt < retainedFrom) senders.delete(each)
    if (senders.size >= MAX_SENDERS) return null
    const sender = { key, seen: new SeenCounters(), lastAt: 0, assembly: null }
    senders.set(name, sender)
    return sender
  }
}

/** Assembles an event from its authentic parts, which must arrive in sequence, with consecutive counters. */
function assemble(sender: Sender, counter: number, plaintext: Buffer): OpenResult {
  const index = plaintext.readUInt16BE(6)
  const count = plaintext.readUInt16BE(8)
  const text = plaintext.subarray(PART_HEADER_BYTES)
  if (count === 1) return parse(text)
  if (index === 0) sender.assembly = { nextIndex: 0, nextCounter: counter, parts: [] }
  const { assembly } = sender
  if (!assembly || assembly.nextIndex !== index || assembly.nextCounter !== counter)
    return { rejected: 'incomplete' }
  assembly.parts.push(text)
  assembly.nextIndex++
  assembly.nextCounter++
  if (assembly.nextIndex < count) return 'part'
  sender.assembly = null
  return parse(Buffer.concat(assembly.parts))
}

function parse(text: Buffer): OpenResult {
  try {
    return { value: JSON.parse(text.toString()) }
  } catch {
    return { rejected: 'invalid' }
  }
}

function nonceOf(header: Buffer): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  header.copy(nonce, NONCE_BYTES - COUNTER_BYTES, COUNTER_OFFSET, HEADER_BYTES)
  return nonce
}
