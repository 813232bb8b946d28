import { KeywayError } from './errors.ts'

/** Maximum number of buffered messages of a slow iterator. */
const MAX_BUFFERED = 10_000

/** An asynchronous iterator over items that are pushed into it, for one consumer. */
export class MessageStream<Message> implements AsyncIterableIterator<Message, undefined> {
  #buffer: Message[] = []
  #pendingReads: PromiseWithResolvers<IteratorResult<Message, undefined>>[] = []
  #ended: { error?: KeywayError } | undefined
  readonly #items: string
  #onReturn: (stream: MessageStream<Message>) => void

  /** @param items what the messages are called in errors, in the plural */
  constructor(onReturn: (stream: MessageStream<Message>) => void, items = 'messages') {
    this.#onReturn = onReturn
    this.#items = items
  }

  push(message: Message): void {
    if (this.#ended) return
    const read = this.#pendingReads.shift()
    if (read) read.resolve({ value: message, done: false })
    else this.#buffer.push(message)
    if (this.#buffer.length <= MAX_BUFFERED) return
    this.#buffer.length = 0
    const advice = `More than ${MAX_BUFFERED} ${this.#items} waited to be read. Read faster.`
    this.end(new KeywayError('queue_full', advice))
    this.#onReturn(this)
  }

  /** Buffered messages are still delivered; then the iteration ends, or throws the error. */
  end(error?: KeywayError): void {
    if (this.#ended) return
    this.#ended = { error }
    for (const read of this.#pendingReads.splice(0)) this.#finish(read)
  }

  next(): Promise<IteratorResult<Message, undefined>> {
    const result = newResult<Message>()
    const message = this.#buffer.shift()
    if (message !== undefined) result.resolve({ value: message, done: false })
    else if (this.#ended) this.#finish(result)
    else this.#pendingReads.push(result)
    return result.promise
  }

  return(): Promise<IteratorResult<Message, undefined>> {
    this.end()
    this.#onReturn(this)
    return Promise.resolve({ value: undefined, done: true })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #finish(result: PromiseWithResolvers<IteratorResult<Message, undefined>>): void {
    const error = this.#ended?.error
    this.#ended = {} // an error is thrown once
    if (error) result.reject(error)
    else result.resolve({ value: undefined, done: true })
  }
}

/** `Promise.withResolvers` is not in Node 20. */
function newResult<Message>(): PromiseWithResolvers<IteratorResult<Message, undefined>> {
  let callbacks!: Pick<PromiseWithResolvers<IteratorResult<Message, undefined>>, 'resolve' | 'reject'>
  const promise = new Promise<IteratorResult<Message, undefined>>((resolve, reject) => {
    callbacks = { resolve, reject }
  })
  return { promise, ...callbacks }
}
