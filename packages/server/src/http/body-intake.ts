import type { IncomingMessage } from 'node:http'
import { KeywayError } from '../errors.ts'
import { type BodyFormat, expectBody, tooLarge } from './body.ts'
import { createEntry, type Entry, LinkedList } from './linked-list.ts'

/** Limits of the bodies that are arriving at one time. The time limit of each body is `HTTP_TIMEOUTS.requestMs`. */
export interface IntakeLimits {
  bodies: number
  /** Per network; all clients behind an untrusted proxy are one network. */
  bodiesPerNetwork: number
  /** Total memory of the parts received so far. */
  bytes: number
}

export const INTAKE_LIMITS: IntakeLimits = {
  bodies: 2_000,
  bodiesPerNetwork: 200,
  bytes: 32 * 1024 * 1024,
}
/** Initial size of a body's buffer, in bytes; it doubles as needed. */
const FIRST_CAPACITY = 1024

export interface BodyIntake {
  /**
   * Reads the whole body. Call it before the request takes a place in the work limit, so that slow senders take none.
   *
   * When a limit is exceeded, one body is refused and its connection closed: in the network that uses most of the
   * exceeded resource, the body that has been arriving for longest. Most bodies arrive in one packet with the head, so
   * those that are still arriving are slow senders; a client with many of them causes only its own to be closed.
   *
   * @throws KeywayError `unsupported_media_type`, `payload_too_large`; `invalid_request` if its connection was closed
   */
  read(incoming: IncomingMessage, network: string, format: BodyFormat): Promise<Buffer>
  /** Number of bodies that are arriving now. */
  readonly arriving: number
}

/** A body that did not arrive completely with the head. */
interface Arrival {
  network: string
  /** Size of its buffer, in bytes. */
  held: number
  incoming: IncomingMessage
  /** Its entries in the list of all arriving bodies and in that of its network. */
  amongAll: Entry<Arrival>
  amongOwn: Entry<Arrival>
}

export function createBodyIntake(limits: IntakeLimits = INTAKE_LIMITS): BodyIntake {
  /** All arriving bodies, oldest first. */
  const arrivals = new LinkedList<Arrival>()
  const byNetwork = new Map<string, LinkedList<Arrival>>()
  let held = 0

  return {
    async read(incoming, network, format) {
      if (!expectBody(incoming, format)) return EMPTY
      // By the next microtask the parser has processed the whole packet.
      await null
      return incoming.complete ? takeWhole(incoming, format) : receive(incoming, network, format.maxBytes)
    },
    get arriving() {
      return arrivals.size
    },
  }

  function receive(incoming: IncomingMessage, network: string, maxBytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const arrival = begin(network, incoming)
      // One growing buffer: a list of one-byte parts would take a hundred times their size.
      let body: Buffer = EMPTY
      let length = 0
      const end = () => {
        incoming.off('data', onData).off('end', onEnd).off('close', onCut)
        finish(arrival)
      }
      const onData = (part: Buffer) => {
        const needed = length + part.length
        if (needed > maxBytes) {
          end()
          incoming.pause()
          reject(tooLarge(maxBytes))
          return
        }
        if (needed > body.length) body = grown(body, needed, maxBytes)
        part.copy(body, length)
        length = needed
        hold(arrival, body.length)
      }
      const onEnd = () => {
        end()
        resolve(body.subarray(0, length))
      }
      const onCut = () => {
        end()
        reject(cutOff())
      }
      incoming.on('data', onData).on('end', onEnd).on('close', onCut)
      // Stays after `end`, since the connection may break later too.
      incoming.on('error', onCut)
      if (incoming.destroyed) onCut()
    })
  }

  function begin(network: string, incoming: IncomingMessage): Arrival {
    const own = byNetwork.get(network) ?? new LinkedList()
    byNetwork.set(network, own)
    const arrival = createArrival(network, incoming)
    own.append(arrival.amongOwn)
    arrivals.append(arrival.amongAll)
    if (own.size > limits.bodiesPerNetwork) closeOldest(own)
    if (arrivals.size > limits.bodies) closeOldest(networkWithMost(bodies => bodies.size))
    return arrival
  }

  function hold(arrival: Arrival, bytes: number): void {
    if (!arrival.amongAll.isLinked) return
    held += bytes - arrival.held
    arrival.held = bytes
    while (held > limits.bytes) closeOldest(networkWithMost(bytesHeldBy))
  }

  /**
   * The bodies of the network with the highest usage; if several have the same, of the one whose oldest body began
   * first.
   */
  function networkWithMost(usage: (bodies: LinkedList<Arrival>) => number): LinkedList<Arrival> {
    let [most] = byNetwork.values()
    for (const bodies of byNetwork.values()) if (usage(bodies) > usage(most!)) most = bodies
    return most!
  }

  function closeOldest(among: LinkedList<Arrival>): void {
    const oldest = among.first!.value
    finish(oldest)
    oldest.incoming.destroy()
  }

  function finish(arrival: Arrival): void {
    if (!arrivals.remove(arrival.amongAll)) return
    held -= arrival.held
    const own = byNetwork.get(arrival.network)!
    own.remove(arrival.amongOwn)
    if (own.size === 0) byNetwork.delete(arrival.network)
  }
}

function createArrival(network: string, incoming: IncomingMessage): Arrival {
  const arrival = { network, held: 0, incoming } as Arrival
  arrival.amongAll = createEntry(arrival)
  arrival.amongOwn = createEntry(arrival)
  return arrival
}

function bytesHeldBy(bodies: LinkedList<Arrival>): number {
  let bytes = 0
  for (const { held } of bodies) bytes += held
  return bytes
}

function takeWhole(incoming: IncomingMessage, { maxBytes }: BodyFormat): Buffer {
  // One part at a time (Node 26): most bodies have one, those that waited for their turn may have several.
  const first: Buffer = incoming.read() ?? EMPTY
  const parts = [first]
  for (let part = incoming.read(); part !== null; part = incoming.read()) parts.push(part)
  const body = parts.length === 1 ? first : Buffer.concat(parts)
  if (body.length > maxBytes) throw tooLarge(maxBytes)
  return body
}

function grown(body: Buffer, needed: number, maxBytes: number): Buffer {
  const capacity = Math.min(maxBytes, Math.max(needed, 2 * body.length, FIRST_CAPACITY))
  const larger = Buffer.alloc(capacity)
  body.copy(larger)
  return larger
}

function cutOff(): KeywayError {
  return new KeywayError('invalid_request', 'The body was cut off.')
}

const EMPTY = Buffer.alloc(0)
