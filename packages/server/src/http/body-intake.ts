import type { IncomingMessage } from 'node:http'
import { KeywayError } from '../errors.ts'
import { type BodyFormat, expectBody, tooLarge } from './body.ts'

/** What bodies that are still arriving may take, all together. The time of each is `HTTP_TIMEOUTS.requestMs`. */
export interface IntakeLimits {
  /** Bodies at once. */
  bodies: number
  /** Bodies at once of one network. Behind a proxy that is not trusted, all its clients are one network. */
  bodiesPerNetwork: number
  /** Memory that the parts received so far take. */
  bytes: number
}

export const INTAKE_LIMITS: IntakeLimits = {
  bodies: 2_000,
  bodiesPerNetwork: 200,
  bytes: 32 * 1024 * 1024,
}
/** Memory that the first part of a body gets; it doubles as more arrives. */
const FIRST_CAPACITY = 1024

export interface BodyIntake {
  /**
   * The body, whole. Called before a request takes a place in the work limit, so a slow sender holds none.
   *
   * Over a limit a body is cut off, connection and all: of the network that has most of what is short, the one that has
   * been arriving for longest. A body usually comes in the packet of its head, so those that are still arriving when the
   * limit is reached are the slow ones, and whoever opens many more cuts off none but his own.
   *
   * @throws KeywayError `unsupported_media_type`, `payload_too_large`; `invalid_request` for one that was cut off
   */
  read(incoming: IncomingMessage, network: string, format: BodyFormat): Promise<Buffer>
  /** Bodies that are arriving now. */
  readonly arriving: number
}

/** A body that did not come with its head. */
interface Arrival {
  network: string
  /** Bytes that are held for it. */
  held: number
  incoming: IncomingMessage
}

export function createBodyIntake(limits: IntakeLimits = INTAKE_LIMITS): BodyIntake {
  /** In the order of their beginnings. */
  const arrivals = new Set<Arrival>()
  const byNetwork = new Map<string, Set<Arrival>>()
  let held = 0

  return {
    async read(incoming, network, format) {
      if (!expectBody(incoming, format)) return EMPTY
      // The parser is through with this packet when the first microtask runs.
      await null
      return incoming.complete ? takeWhole(incoming, format) : receive(incoming, network, format.maxBytes)
    },
    get arriving() {
      return arrivals.size
    },
  }

  function receive(incoming: IncomingMessage, network: string, maxBytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const arrival = begin({ network, held: 0, incoming })
      // One buffer that grows: kept one by one, parts of one byte each would take a hundred times their size.
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
      // Stays: a connection may break at any time later.
      incoming.on('error', onCut)
      if (incoming.destroyed) onCut()
    })
  }

  function begin(arrival: Arrival): Arrival {
    const own = byNetwork.get(arrival.network) ?? new Set()
    byNetwork.set(arrival.network, own)
    own.add(arrival)
    arrivals.add(arrival)
    if (own.size > limits.bodiesPerNetwork) cutOldest(own)
    if (arrivals.size > limits.bodies) cutOldest(greediest(bodies => bodies.size))
    return arrival
  }

  function hold(arrival: Arrival, bytes: number): void {
    if (!arrivals.has(arrival)) return
    held += bytes - arrival.held
    arrival.held = bytes
    while (held > limits.bytes) cutOldest(greediest(heldFor))
  }

  /** The bodies of the network that has most of what is short; of equals, of the one that began first. */
  function greediest(share: (bodies: Set<Arrival>) => number): Set<Arrival> {
    let [most] = byNetwork.values()
    for (const bodies of byNetwork.values()) if (share(bodies) > share(most!)) most = bodies
    return most!
  }

  function cutOldest(among: Set<Arrival>): void {
    const [oldest] = among
    finish(oldest!)
    oldest!.incoming.destroy()
  }

  function finish(arrival: Arrival): void {
    if (!arrivals.delete(arrival)) return
    held -= arrival.held
    const own = byNetwork.get(arrival.network)!
    own.delete(arrival)
    if (own.size === 0) byNetwork.delete(arrival.network)
  }
}

function heldFor(bodies: Set<Arrival>): number {
  let bytes = 0
  for (const { held } of bodies) bytes += held
  return bytes
}

function takeWhole(incoming: IncomingMessage, { maxBytes }: BodyFormat): Buffer {
  const body: Buffer = incoming.read() ?? EMPTY
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
