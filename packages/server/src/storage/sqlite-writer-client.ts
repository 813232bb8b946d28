import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { unavailable } from '../errors.ts'
import type { Result } from './engine.ts'
import type { WriterRequest, WriterResponse } from './sqlite-writer.ts'

/** A statement failed. */
export class SqliteError extends Error {
  override readonly name = 'SqliteError'
  /** SQLite's extended result code. */
  readonly code: number

  constructor(message: string, code: number) {
    super(message)
    this.code = code
  }
}

/** The whole batch was rolled back. */
export class BatchAborted extends Error {
  override readonly name = 'BatchAborted'
}

type WithoutId<Request> = Request extends { id: number } ? Omit<Request, 'id'> : Request

export interface Writer {
  /** Waits for the response. @throws SqliteError, BatchAborted, KeywayError `unavailable` when the thread is gone */
  request(request: WithoutId<Extract<WriterRequest, { id: number }>>): Promise<Result>
  /** Does not wait: requests are executed in order, and a failure is reported by the next response of the batch. */
  post(request: Extract<WriterRequest, { kind: 'release' | 'rollback' }>): void
  /** Resolves with the reason when the thread ends before `close`. */
  readonly failure: Promise<Error>
  close(): Promise<void>
}

interface Waiting {
  resolve(result: Result): void
  reject(error: unknown): void
}

/** Starts the writer thread and waits until it has opened the file. */
export async function startWriter(file: string): Promise<Writer> {
  const worker = new Worker(new URL('./sqlite-writer.ts', import.meta.url), { workerData: { file } })
  await once(worker, 'message')
  const waiting = new Map<number, Waiting>()
  let outgoing: WriterRequest[] = []
  let lastId = 0
  let gone: Error | null = null
  let isClosing = false
  const failure = Promise.withResolvers<Error>()

  worker.on('message', (responses: WriterResponse[]) => {
    for (const answer of responses) receive(answer)
    if (waiting.size === 0) worker.unref()
  })
  const giveUp = (cause: Error) => {
    gone ??= cause
    if (!isClosing) failure.resolve(gone)
    for (const asked of waiting.values()) asked.reject(unavailable(gone))
    waiting.clear()
  }
  worker.on('error', giveUp)
  worker.on('exit', () => giveUp(new Error('the thread that writes the database has ended')))
  worker.unref()

  const receive = (answer: WriterResponse) => {
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (answer.kind === 'done') asked?.resolve(answer)
    else if (answer.kind === 'failed') asked?.reject(new SqliteError(answer.message, answer.code))
    else asked?.reject(new BatchAborted(answer.message))
  }
  // Waking the other thread costs more than most statements, so the requests of one turn of the event loop are sent
  // as one message and answered by one: 12 messages for the 21 requests of a new account, 7 % less processor time.
  const flush = () => {
    worker.postMessage(outgoing)
    outgoing = []
  }
  const send = (request: WriterRequest) => {
    if (outgoing.length === 0) process.nextTick(flush)
    outgoing.push(request)
  }
  const ask: Writer['request'] = request => {
    if (gone) return Promise.reject(unavailable(gone))
    const id = ++lastId
    return new Promise((resolve, reject) => {
      // Keeps the process alive only while a response is pending.
      if (waiting.size === 0) worker.ref()
      waiting.set(id, { resolve, reject })
      send({ ...request, id })
    })
  }
  return {
    request: ask,
    post: send,
    failure: failure.promise,
    async close() {
      if (gone) return
      isClosing = true
      const exited = once(worker, 'exit')
      await ask({ kind: 'close' })
      worker.ref()
      await exited
    },
  }
}
