import { Worker } from 'node:worker_threads'
import type { Log } from '../log.ts'
import { isSameSignature, type SecretKey, SIGNATURE_BYTES, sign, verify } from './ed25519.ts'
import type { SigningRequest } from './signing-worker.ts'

/**
 * Signatures in one turn of the event loop from which on a thread makes them: a message to the thread and back costs
 * some 10 µs, a signature 14 µs (bench/threads.ts).
 */
const MIN_BATCH = 4
/** Signatures per message, so that the thread begins while a long turn still adds more. */
const MAX_BATCH = 64
/** Turns with MIN_BATCH signatures after which the thread is started: a service without load saves its memory. */
const BUSY_TURNS_BEFORE_START = 250

/** Makes Ed25519 signatures: on the event loop, and under load in a second thread, where there is a core for it. */
export interface Signer {
  /** The signature of a JWS (RFC 7515); a promise if the thread makes it. Never rejects. */
  sign(signingInput: string, secretKey: SecretKey): Buffer | Promise<Buffer>
  /** Whether this is the signature that `sign` makes (see `verify` in ed25519.ts); a promise as there. */
  verify(signingInput: string, signature: Buffer, secretKey: SecretKey): boolean | Promise<boolean>
  /** Permits the thread, which is started under load. */
  allowThread(): void
  /** Whether the thread runs. */
  readonly hasThread: boolean
  /** Ends the thread. Pending signatures are made on the event loop. */
  close(): Promise<void>
}

interface Batch extends SigningRequest {
  resolvers: ((signature: Buffer) => void)[]
}

export function createSigner(log: Log): Signer {
  let isThreadAllowed = false
  let worker: Worker | null = null
  /** The running thread, once it can sign. */
  let thread: Worker | null = null
  /** Batches whose signatures the thread has not returned, in the order in which they were sent. */
  let sent: Batch[] = []
  let current: Batch | null = null
  let signaturesInTurn = 0
  let isTurnScheduled = false
  /** Whether the last turn with signatures had at least MIN_BATCH. */
  let isBusy = false
  let busyTurns = 0

  return {
    sign(signingInput, secretKey) {
      if (!shouldUseThread()) return sign(Buffer.from(signingInput), secretKey)
      return addToBatch(signingInput, secretKey)
    },
    verify(signingInput, signature, secretKey) {
      if (!shouldUseThread()) return verify(Buffer.from(signingInput), signature, secretKey)
      return addToBatch(signingInput, secretKey).then(expected => isSameSignature(signature, expected))
    },
    allowThread() {
      isThreadAllowed = true
    },
    get hasThread() {
      return thread !== null
    },
    async close() {
      isThreadAllowed = false
      await worker?.terminate()
    },
  }

  /** Called for each signature, which it counts. */
  function shouldUseThread(): boolean {
    if (!isThreadAllowed) return false
    signaturesInTurn++
    if (!isTurnScheduled) setImmediate(endTurn)
    isTurnScheduled = true
    return isBusy && thread !== null
  }

  function addToBatch(signingInput: string, secretKey: SecretKey): Promise<Buffer> {
    if (current && (current.secretKey !== secretKey || current.signingInputs.length >= MAX_BATCH)) send()
    current ??= { secretKey, signingInputs: [], resolvers: [] }
    current.signingInputs.push(signingInput)
    return new Promise(resolve => current!.resolvers.push(resolve))
  }

  function send(): void {
    const { secretKey, signingInputs } = current!
    sent.push(current!)
    current = null
    thread!.postMessage({ secretKey, signingInputs } satisfies SigningRequest)
  }

  /** Called after the reads of all sockets that had data, which begin the calls of the turn. */
  function endTurn(): void {
    isTurnScheduled = false
    if (current) send()
    isBusy = signaturesInTurn >= MIN_BATCH
    signaturesInTurn = 0
    if (isBusy && ++busyTurns === BUSY_TURNS_BEFORE_START) startThread()
  }

  function startThread(): void {
    const started = new Worker(new URL('./signing-worker.ts', import.meta.url))
    worker = started
    started.unref()
    started.once('message', () => {
      thread = started
      started.on('message', resolveNext)
    })
    started.on('error', error => log.error({ err: error }, 'the thread that signs tokens failed'))
    started.on('exit', onExit)
  }

  function resolveNext(signatures: Uint8Array): void {
    const { resolvers } = sent.shift()!
    const bytes = Buffer.from(signatures.buffer)
    for (const [index, resolve] of resolvers.entries())
      resolve(bytes.subarray(index * SIGNATURE_BYTES, (index + 1) * SIGNATURE_BYTES))
  }

  /** From now on the event loop signs, beginning with what the thread left. */
  function onExit(): void {
    isThreadAllowed = false
    thread = null
    const pending = current ? [...sent, current] : sent
    sent = []
    current = null
    for (const { secretKey, signingInputs, resolvers } of pending)
      for (const [index, resolve] of resolvers.entries())
        resolve(sign(Buffer.from(signingInputs[index]!), secretKey))
  }
}
