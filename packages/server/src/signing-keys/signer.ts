import { Worker } from 'node:worker_threads'
import type { Log } from '../log.ts'
import { isSameSignature, type SecretKey, SIGNATURE_BYTES, sign, verify } from './ed25519.ts'
import type { SigningRequest } from './signing-worker.ts'

/**
 * If one turn of the event loop makes at least this many signatures, the thread makes those of the next turn: a message
 * to the thread and back costs some 10 µs, a signature 14 µs (bench/threads.ts).
 */
const MIN_BATCH = 4
/** Maximum number of signatures in one message, so that the thread begins while a long turn still adds more. */
const MAX_BATCH = 64
/**
 * The thread starts after this many turns of the event loop with MIN_BATCH signatures or more: without load its memory
 * is saved.
 */
const BUSY_TURNS_BEFORE_START = 250

/**
 * A thread that returned no signatures for one to two of these intervals is given up: a working one would make all that
 * may be pending (SECURITY.md) in a tenth of a second.
 */
const CHECK_INTERVAL_MS = 1000

/** The thread allocates only for the current message, so a larger young generation would only take memory. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 4 }

/** Makes Ed25519 signatures: on the event loop, and under load in a second thread, where there is a core for it. */
export interface Signer {
  /** The signature of a JWS (RFC 7515); a promise if the thread makes it. Never rejects. */
  sign(signingInput: string, secretKey: SecretKey): Buffer | Promise<Buffer>
  /**
   * Whether this is the signature that `sign` makes; a promise if the thread makes the one to compare it with. See
   * `verify` in ed25519.ts.
   */
  verify(signingInput: string, signature: Buffer, secretKey: SecretKey): boolean | Promise<boolean>
  /** Allows the thread, which is then started under load. */
  allowThread(): void
  readonly hasThread: boolean
  /** Ends the thread, for good. Pending signatures are made on the event loop. */
  close(): Promise<void>
}

interface Batch extends SigningRequest {
  resolvers: ((signature: Buffer) => void)[]
}

/**
 * If the thread ends or hangs, the event loop makes all signatures from then on.
 *
 * @param openWorker starts the thread, which runs signing-worker.ts
 */
export function createSigner(log: Log, openWorker: () => Worker = openSigningWorker): Signer {
  let isThreadAllowed = false
  let worker: Worker | null = null
  /** The running thread, once it can sign. */
  let thread: Worker | null = null
  /** Batches whose signatures the thread has not returned, in the order in which they were sent. */
  let sentBatches: Batch[] = []
  let currentBatch: Batch | null = null
  let signaturesInTurn = 0
  let isTurnEndScheduled = false
  /** Whether at least MIN_BATCH signatures were requested in the last turn of the event loop that had any. */
  let isBusy = false
  let busyTurns = 0
  /** The oldest batch that was pending when `checkProgress` last ran; undefined if none was. */
  let firstBatchAtCheck: Batch | undefined
  let checkTimer: NodeJS.Timeout | undefined

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
      useEventLoop()
      await worker?.terminate()
    },
  }

  /** Whether the thread makes the next signature. Called once for each signature, since it counts them. */
  function shouldUseThread(): boolean {
    if (!isThreadAllowed) return false
    signaturesInTurn++
    if (!isTurnEndScheduled) setImmediate(endTurn)
    isTurnEndScheduled = true
    return isBusy && thread !== null
  }

  function addToBatch(signingInput: string, secretKey: SecretKey): Promise<Buffer> {
    if (
      currentBatch &&
      (currentBatch.secretKey !== secretKey || currentBatch.signingInputs.length >= MAX_BATCH)
    )
      sendBatch()
    currentBatch ??= { secretKey, signingInputs: [], resolvers: [] }
    currentBatch.signingInputs.push(signingInput)
    return new Promise(resolve => currentBatch!.resolvers.push(resolve))
  }

  function sendBatch(): void {
    const { secretKey, signingInputs } = currentBatch!
    sentBatches.push(currentBatch!)
    currentBatch = null
    thread!.postMessage({ secretKey, signingInputs } satisfies SigningRequest)
  }

  /**
   * Runs when this turn of the event loop has read all sockets with data: sends the signatures for their requests
   * together, and takes their number as the load.
   */
  function endTurn(): void {
    isTurnEndScheduled = false
    if (currentBatch) sendBatch()
    isBusy = signaturesInTurn >= MIN_BATCH
    signaturesInTurn = 0
    if (isBusy && ++busyTurns === BUSY_TURNS_BEFORE_START) startThread()
  }

  function startThread(): void {
    const newWorker = openWorker()
    worker = newWorker
    newWorker.unref()
    newWorker.once('message', () => {
      if (!isThreadAllowed) return
      thread = newWorker
      newWorker.on('message', resolveNext)
      checkTimer = setInterval(checkProgress, CHECK_INTERVAL_MS).unref()
    })
    newWorker.on('error', error => log.error({ err: error }, 'the thread that signs tokens failed'))
    newWorker.on('exit', useEventLoop)
  }

  function resolveNext(signatures: Uint8Array): void {
    const batch = sentBatches.shift()
    if (!batch) return // the thread was given up
    const bytes = Buffer.from(signatures.buffer)
    for (const [index, resolve] of batch.resolvers.entries())
      resolve(bytes.subarray(index * SIGNATURE_BYTES, (index + 1) * SIGNATURE_BYTES))
  }

  function checkProgress(): void {
    const firstBatch = sentBatches[0]
    // If the event loop was blocked, the thread's answer may have arrived but not been read: it is read first.
    if (firstBatch && firstBatch === firstBatchAtCheck)
      setImmediate(() => firstBatch === sentBatches[0] && giveUpThread())
    firstBatchAtCheck = firstBatch
  }

  function giveUpThread(): void {
    log.error({}, 'the thread that signs tokens does not answer; the event loop signs from now on')
    useEventLoop()
    void worker!.terminate()
  }

  /** From now on the event loop makes all signatures, first those that the thread did not return. */
  function useEventLoop(): void {
    isThreadAllowed = false
    thread = null
    clearInterval(checkTimer)
    const pendingBatches = currentBatch ? [...sentBatches, currentBatch] : sentBatches
    sentBatches = []
    currentBatch = null
    for (const { secretKey, signingInputs, resolvers } of pendingBatches)
      for (const [index, resolve] of resolvers.entries())
        resolve(sign(Buffer.from(signingInputs[index]!), secretKey))
  }
}

function openSigningWorker(): Worker {
  return new Worker(new URL('./signing-worker.ts', import.meta.url), { resourceLimits: THREAD_LIMITS })
}
