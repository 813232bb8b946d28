import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { unavailable } from '../errors.ts'
import type { Result } from './engine.ts'
import type { WriterRequest, WriterResponse } from './sqlite-writer.ts'

/** The error of a statement that failed. Its transaction was not rolled back. */
export class SqliteError extends Error {
  override readonly name = 'SqliteError'
  /** SQLite's extended result code. */
  readonly code: number

  constructor(message: string, code: number) {
    super(message)
    this.code = code
  }
}

/** The error for each request of a batch that was rolled back as a whole. */
export class BatchAborted extends Error {
  override readonly name = 'BatchAborted'
}

type WithoutId<Request> = Request extends { id: number } ? Omit<Request, 'id'> : Request

export interface Writer {
  /** Waits for the response. @throws SqliteError, BatchAborted, KeywayError `unavailable` if the thread has ended */
  request(request: WithoutId<Extract<WriterRequest, { id: number }>>): Promise<Result>
  /** Does not wait: requests are executed in order, and the next response of the batch reports a failure. */
  post(request: Extract<WriterRequest, { kind: 'release' | 'rollback' }>): void
  /** Resolves with the reason if the thread ends before `close` was called. */
  readonly failure: Promise<Error>
  close(): Promise<void>
}

interface PendingRequest {
  resolve(result: Result): void
  reject(error: unknown): void
}

/** Starts the writer thread and waits until it has opened the file. Rejects with the thread's error if it cannot. */
export async function startWriter(file: string): Promise<Writer> {
  const worker = new Worker(new URL('./sqlite-writer.ts', import.meta.url), { workerData: { file } })
  await once(worker, 'message')
  /** By the id of the request. */
  const pendingRequests = new Map<number, PendingRequest>()
  let outgoingRequests: WriterRequest[] = []
  let lastId = 0
  /** Why the thread has ended; null while it runs. */
  let endReason: Error | null = null
  let isClosing = false
  const failure = Promise.withResolvers<Error>()

  worker.on('message', (responses: WriterResponse[]) => {
    for (const answer of responses) receive(answer)
    if (pendingRequests.size === 0) worker.unref()
  })
  const rejectAll = (cause: Error) => {
    endReason ??= cause
    if (!isClosing) failure.resolve(endReason)
    for (const pending of pendingRequests.values()) pending.reject(unavailable(endReason))
    pendingRequests.clear()
  }
  worker.on('error', rejectAll)
  worker.on('exit', () => rejectAll(new Error('the thread that writes the database has ended')))
  worker.unref()

  const receive = (answer: WriterResponse) => {
    const pending = pendingRequests.get(answer.id)
    pendingRequests.delete(answer.id)
    if (answer.kind === 'done') pending?.resolve(answer)
    else if (answer.kind === 'failed') pending?.reject(new SqliteError(answer.message, answer.code))
    else pending?.reject(new BatchAborted(answer.message))
  }
  // Waking the other thread costs more than most statements, so the requests of one turn of the event loop are sent
  // as one message and answered by one: 12 messages for the 21 requests of a new account, 7 % less processor time.
  const flush = () => {
    worker.postMessage(outgoingRequests)
    outgoingRequests = []
  }
  const send = (request: WriterRequest) => {
    if (outgoingRequests.length === 0) process.nextTick(flush)
    outgoingRequests.push(request)
  }
  const sendRequest: Writer['request'] = request => {
    if (endReason) return Promise.reject(unavailable(endReason))
    const id = ++lastId
    return new Promise((resolve, reject) => {
      // Keeps the process alive only while a response is pending.
      if (pendingRequests.size === 0) worker.ref()
      pendingRequests.set(id, { resolve, reject })
      send({ ...request, id })
    })
  }
  return {
    request: sendRequest,
    post: send,
    failure: failure.promise,
    async close() {
      if (endReason) return
      isClosing = true
      const exited = once(worker, 'exit')
      await sendRequest({ kind: 'close' })
      worker.ref()
      await exited
    },
  }
}
