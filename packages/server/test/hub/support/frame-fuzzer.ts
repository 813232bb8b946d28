import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Random } from '../../support/random.ts'
import type { Client } from '../client.ts'
import {
  BINARY,
  CLOSE,
  CONTINUATION,
  closeCodeIn,
  dialHub,
  encodeFrame,
  PING,
  PONG,
  TEXT,
} from './raw-frames.ts'

export interface FuzzOptions {
  port: number
  /** Valid agent tokens. */
  tokens: readonly string[]
  /** A well-behaved connection that must be served meanwhile. */
  witness: Client
  seconds: number
  seed: number
}

export interface FuzzReport {
  connections: number
  writes: number
  bytes: number
  /** Number of connections by close code; `none`: without a close frame. */
  closes: Record<string, number>
  /** The longest that `FuzzOptions.witness` waited for a `pong`, in milliseconds. */
  slowestPong: number
}

const CONCURRENCY = 16
/** The fuzzer closes a connection that the hub has not closed this long after the last write. */
const CLOSE_TIMEOUT_MS = 150

/** Writes malformed, huge, fragmented and interleaved frames over many connections, in pieces of random length. */
export async function fuzzFrames(options: FuzzOptions): Promise<FuzzReport> {
  const report: FuzzReport = { connections: 0, writes: 0, bytes: 0, closes: {}, slowestPong: 0 }
  const endsAt = performance.now() + options.seconds * 1000
  const attacks = Array.from({ length: CONCURRENCY }, async (_, n) => {
    const random = new Random(options.seed + n)
    while (performance.now() < endsAt) await attack(options, random, report)
  })
  const witnessWatch = watchWitness(options.witness, endsAt, report)
  await Promise.all([...attacks, witnessWatch])
  return report
}

async function watchWitness(witness: Client, endsAt: number, report: FuzzReport): Promise<void> {
  while (performance.now() < endsAt) {
    const sentAt = performance.now()
    await witness.flush()
    report.slowestPong = Math.max(report.slowestPong, performance.now() - sentAt)
    await wait(100)
  }
}

async function attack({ port, tokens }: FuzzOptions, random: Random, report: FuzzReport): Promise<void> {
  const socket = dialHub(port, random.pick(tokens))
  report.connections++
  const received: Buffer[] = []
  socket.on('data', chunk => received.push(Buffer.from(chunk)))
  const closed = new Promise(resolve => socket.once('close', resolve))
  const bytes = Buffer.concat(
    Array.from({ length: random.between(1, 12) }, () => randomInput(random, tokens)),
  )
  // In one of ten cases the frames are sent before the handshake is answered.
  if (random.next() < 0.9) await Promise.race([new Promise(resolve => socket.once('data', resolve)), closed])
  for (const piece of pieces(bytes, random)) {
    if (!socket.writable) break
    socket.write(piece)
    report.writes++
    report.bytes += piece.length
    if (random.next() < 0.3) await new Promise(resolve => setImmediate(resolve))
  }
  await endConnection(socket, closed, random)
  const code = String(closeCodeIn(Buffer.concat(received)) ?? 'none')
  report.closes[code] = (report.closes[code] ?? 0) + 1
}

async function endConnection(socket: Socket, closed: Promise<unknown>, random: Random): Promise<void> {
  const endKind = random.between(0, 3)
  if (endKind === 0) socket.resetAndDestroy()
  if (endKind === 1) socket.end()
  await Promise.race([closed, wait(CLOSE_TIMEOUT_MS, undefined, { ref: false })])
  socket.destroy()
  await closed
}

function* pieces(bytes: Buffer, random: Random): Generator<Buffer> {
  const longest = random.pick([1, 7, 125, 4096, 70_000])
  // What remains after 300 pieces is one piece: more pieces would only take time.
  for (let at = 0, count = 0; at < bytes.length; count++) {
    const length = count < 300 ? random.between(1, longest) : bytes.length
    yield bytes.subarray(at, at + length)
    at += length
  }
}

function randomInput(random: Random, tokens: readonly string[]): Buffer {
  return random.pick(INPUT_GENERATORS)(random, tokens)
}

type InputGenerator = (random: Random, tokens: readonly string[]) => Buffer

const INPUT_GENERATORS: InputGenerator[] = [
  // valid frames
  () => text('{"type":"ping"}'),
  (random, tokens) => text(JSON.stringify({ type: 'token', token: random.pick(tokens) })),
  random => text(JSON.stringify({ type: 'send', id: `${random.next()}`, to: 'all', data: random.next() })),
  // JSON that is not a valid frame
  random =>
    text(random.pick(['[]', '7', 'null', '""', '{}', '{"type":{}}', '{"__proto__":{"type":"ping"}}'])),
  random => text(`${'[{"a":'.repeat(random.between(1, 9000))}`),
  random =>
    text(
      `{"type":"send","id":"x","to":"all","data":${'['.repeat(3000)}${']'.repeat(random.between(2999, 3001))}}`,
    ),
  random => text(JSON.stringify({ type: 'token', token: 'e'.repeat(random.between(8190, 8194)) })),
  // a valid frame with random bytes replaced
  random => text(withRandomBytes('{"type":"send","id":"x","to":"all","data":{"a":[1,2,"\u00e9"]}}', random)),
  // frames that RFC 6455 forbids
  random => encodeFrame({ opcode: random.between(0, 15), payload: random.bytes(random.between(0, 200)) }),
  random => encodeFrame({ opcode: TEXT, payload: Buffer.from('{}'), reserved: random.between(1, 7) }),
  () => encodeFrame({ opcode: TEXT, payload: Buffer.from('{"type":"ping"}'), masked: false }),
  random => encodeFrame({ opcode: random.pick([CLOSE, PING, PONG]), payload: random.bytes(130) }),
  random => encodeFrame({ opcode: random.pick([CLOSE, PING, PONG]), payload: random.bytes(3), fin: false }),
  random => encodeFrame({ opcode: CLOSE, payload: random.bytes(random.between(0, 4)) }),
  // frames that are too long, and frames that only claim to be
  random => text(' '.repeat(random.between(65_530, 65_540))),
  random =>
    encodeFrame({ opcode: BINARY, payload: random.bytes(100), claimedLength: random.pick(CLAIMED_LENGTHS) }),
  // fragmented, with control frames in between, some without a last fragment
  random => fragmented('{"type":"ping"}', random, random.next() < 0.7),
  random => fragmented('x'.repeat(60_000), random, false),
  random => Buffer.concat(Array.from({ length: random.between(1, 1100) }, () => EMPTY_PIECE)),
  // interleaved: a second message begins inside the first
  random => Buffer.concat([fragmented('{"type":', random, false), fragmented('"ping"}', random, true)]),
  // floods
  random => Buffer.concat(Array.from({ length: random.between(50, 500) }, () => text('{"type":"ping"}'))),
  random =>
    Buffer.concat(
      Array.from({ length: random.between(50, 500) }, () =>
        encodeFrame({ opcode: PING, payload: Buffer.alloc(9) }),
      ),
    ),
  // random bytes
  random => random.bytes(random.between(1, 5000)),
]

const CLAIMED_LENGTHS = [65_537n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 62n, 2n ** 63n, 2n ** 64n - 1n]
const EMPTY_PIECE = encodeFrame({ opcode: CONTINUATION, payload: Buffer.alloc(0), fin: false })

function text(value: string | Buffer): Buffer {
  return encodeFrame({ opcode: TEXT, payload: Buffer.from(value) })
}

function fragmented(message: string, random: Random, isComplete: boolean): Buffer {
  const payload = Buffer.from(message)
  const frames: Buffer[] = []
  for (let at = 0; at < payload.length; ) {
    const end = Math.min(payload.length, at + random.between(1, Math.ceil(payload.length / 3)))
    const isLastFragment = isComplete && end === payload.length
    frames.push(
      encodeFrame({
        opcode: at === 0 ? TEXT : CONTINUATION,
        payload: payload.subarray(at, end),
        fin: isLastFragment,
      }),
    )
    if (!isLastFragment && random.next() < 0.5)
      frames.push(encodeFrame({ opcode: PING, payload: random.bytes(5) }))
    at = end
  }
  return Buffer.concat(frames)
}

function withRandomBytes(message: string, random: Random): Buffer {
  const bytes = Buffer.from(message)
  for (let turn = random.between(1, 4); turn > 0; turn--) {
    bytes[random.between(0, bytes.length - 1)] = random.between(0, 255)
  }
  return bytes
}
