import type { IncomingMessage } from 'node:http'
import { KeywayError } from '../errors.ts'
import { type BodyFormat, expectBody, tooLarge } from './body.ts'
import { createEntry, type Entry, LinkedList } from './linked-list.ts'

/** Limits of all bodies that are arriving at the same time. Each body must arrive within `HTTP_TIMEOUTS.requestMs`. */
export interface IntakeLimits {
  bodies: number
  /** Per network; all clients behind an untrusted proxy are one network. */
  bodiesPerNetwork: number
  /** Maximum total size of the buffers of the bodies that are arriving. */
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
   * Reads the whole body; the result is empty if the request has no body. Must not be called within the work limit
   * (work-limit.ts), which slow senders would use up.
   *
   * When a limit is exceeded, one connection is closed. It belongs to the network that uses most of the exceeded
   * resource, and its body has been arriving for longest. Most bodies arrive in one packet with the head, so the others
   * come from slow senders, and a client that sends many bodies slowly causes only its own connections to be closed.
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
  bufferSize: number
  incoming: IncomingMessage
  /** Its entries in the list of all arriving bodies and in that of its network. */
  entryInAll: Entry<Arrival>
  entryInNetwork: Entry<Arrival>
}

export function createBodyIntake(limits: IntakeLimits = INTAKE_LIMITS): BodyIntake {
  /** All arriving bodies, oldest first. */
  const arrivals = new LinkedList<Arrival>()
  /** The same bodies, by the network of the client. */
  const arrivalsByNetwork = new Map<string, LinkedList<Arrival>>()
  let bufferedBytes = 0

  return {
    async read(incoming, network, format) {
      if (!expectBody(incoming, format)) return EMPTY_BODY
      // By the next microtask the parser has processed the whole packet, so `complete` says whether the body was in it.
      await null
      return incoming.complete
        ? readCompleteBody(incoming, format)
        : receive(incoming, network, format.maxBytes)
    },
    get arriving() {
      return arrivals.size
    },
  }

  function receive(incoming: IncomingMessage, network: string, maxBytes: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const arrival = addArrival(network, incoming)
      // All parts are copied into one growing buffer, since a list of one-byte parts would take a hundred times their
      // size.
      let body: Buffer = EMPTY_BODY
      let length = 0
      const stop = () => {
        incoming.off('data', onData).off('end', onEnd).off('close', onClose)
        removeArrival(arrival)
      }
      const onData = (part: Buffer) => {
        const neededBytes = length + part.length
        if (neededBytes > maxBytes) {
          stop()
          incoming.pause()
          reject(tooLarge(maxBytes))
          return
        }
        if (neededBytes > body.length) body = enlarge(body, neededBytes, maxBytes)
        part.copy(body, length)
        length = neededBytes
        setBufferSize(arrival, body.length)
      }
      const onEnd = () => {
        stop()
        resolve(body.subarray(0, length))
      }
      const onClose = () => {
        stop()
        reject(bodyCutOff())
      }
      incoming.on('data', onData).on('end', onEnd).on('close', onClose)
      // `stop` does not remove this listener: without one, an `error` after the body would end the process.
      incoming.on('error', onClose)
      if (incoming.destroyed) onClose()
    })
  }

  function addArrival(network: string, incoming: IncomingMessage): Arrival {
    const networkArrivals = arrivalsByNetwork.get(network) ?? new LinkedList()
    arrivalsByNetwork.set(network, networkArrivals)
    const arrival = createArrival(network, incoming)
    networkArrivals.append(arrival.entryInNetwork)
    arrivals.append(arrival.entryInAll)
    if (networkArrivals.size > limits.bodiesPerNetwork) closeOldest(networkArrivals)
    if (arrivals.size > limits.bodies) closeOldest(bodiesOfTopNetwork(bodies => bodies.size))
    return arrival
  }

  function setBufferSize(arrival: Arrival, bytes: number): void {
    if (!arrival.entryInAll.isLinked) return
    bufferedBytes += bytes - arrival.bufferSize
    arrival.bufferSize = bytes
    while (bufferedBytes > limits.bytes) closeOldest(bodiesOfTopNetwork(bufferedBytesOf))
  }

  /**
   * The bodies of the network with the highest usage. If several have the same usage: of the network that has had
   * arriving bodies for longest.
   */
  function bodiesOfTopNetwork(usage: (bodies: LinkedList<Arrival>) => number): LinkedList<Arrival> {
    let [most] = arrivalsByNetwork.values()
    for (const bodies of arrivalsByNetwork.values()) if (usage(bodies) > usage(most!)) most = bodies
    return most!
  }

  function closeOldest(bodies: LinkedList<Arrival>): void {
    const oldestArrival = bodies.first!.value
    removeArrival(oldestArrival)
    oldestArrival.incoming.destroy()
  }

  function removeArrival(arrival: Arrival): void {
    if (!arrivals.remove(arrival.entryInAll)) return
    bufferedBytes -= arrival.bufferSize
    const networkArrivals = arrivalsByNetwork.get(arrival.network)!
    networkArrivals.remove(arrival.entryInNetwork)
    if (networkArrivals.size === 0) arrivalsByNetwork.delete(arrival.network)
  }
}

function createArrival(network: string, incoming: IncomingMessage): Arrival {
  const arrival = { network, bufferSize: 0, incoming } as Arrival
  arrival.entryInAll = createEntry(arrival)
  arrival.entryInNetwork = createEntry(arrival)
  return arrival
}

function bufferedBytesOf(bodies: LinkedList<Arrival>): number {
  let bytes = 0
  for (const { bufferSize } of bodies) bytes += bufferSize
  return bytes
}

function readCompleteBody(incoming: IncomingMessage, { maxBytes }: BodyFormat): Buffer {
  // Since Node 26 `read()` returns one part at a time. Most bodies have one part; a request that was queued may have
  // more.
  const firstPart: Buffer = incoming.read() ?? EMPTY_BODY
  const parts = [firstPart]
  for (let part = incoming.read(); part !== null; part = incoming.read()) parts.push(part)
  const body = parts.length === 1 ? firstPart : Buffer.concat(parts)
  if (body.length > maxBytes) throw tooLarge(maxBytes)
  return body
}

function enlarge(body: Buffer, needed: number, maxBytes: number): Buffer {
  const capacity = Math.min(maxBytes, Math.max(needed, 2 * body.length, FIRST_CAPACITY))
  const largerBuffer = Buffer.alloc(capacity)
  body.copy(largerBuffer)
  return largerBuffer
}

function bodyCutOff(): KeywayError {
  return new KeywayError('invalid_request', 'The body was cut off.')
}

const EMPTY_BODY = Buffer.alloc(0)
