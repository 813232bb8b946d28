import type { IncomingMessage } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Answer } from './answer.ts'
import type { FairQueue, Flow } from './fair-queue.ts'
import { overloaded } from './work-limit.ts'

export interface Pacing {
  /**
   * Replaces a stream in an answer by one that waits for the client's turn before each piece, and fails if the client
   * has too many queued requests. Returns event streams and answers without a stream unchanged.
   */
  ofAnswer(answer: Answer, incoming: IncomingMessage): Answer
  /**
   * Does the same with the body of a page that is a download (`Content-Disposition`); returns other pages unchanged.
   */
  ofPage(response: Response, incoming: IncomingMessage): Response
}

/**
 * Paces downloads: each piece is read in a turn of the fair queue, as if it were a request of the client. Otherwise one
 * account that downloads long lists again and again could occupy the event loop.
 */
export function createPacing(
  fairQueue: Pick<FairQueue, 'startLong'>,
  flowOf: (incoming: IncomingMessage) => Flow,
): Pacing {
  return {
    ofAnswer(answer, incoming) {
      const { body, type } = answer
      const isDownload = body instanceof ReadableStream && type !== 'text/event-stream'
      return isDownload ? { ...answer, body: pace(body, turnWaiterFor(incoming)) } : answer
    },
    ofPage(response, incoming) {
      const isDownload = response.headers.has('Content-Disposition') && response.body !== null
      return isDownload ? new Response(pace(response.body!, turnWaiterFor(incoming)), response) : response
    },
  }

  /** Returns a function that waits for the next turn of the client in the fair queue. */
  function turnWaiterFor(incoming: IncomingMessage): () => Promise<void> {
    // A client that disconnects ends the download; a turn that is still queued then does nothing.
    const flow = { ...flowOf(incoming), onDisconnect: () => {} }
    return () =>
      new Promise((resolve, reject) => {
        fairQueue.startLong(flow, resolve, () => reject(overloaded()))
      })
  }
}

/** The returned stream has no buffer of its own (`highWaterMark` 0): only the source stream may read ahead. */
function pace(download: ReadableStream, waitForTurn: () => Promise<void>): ReadableStream {
  const reader = download.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        // Without this wait a fast client would read the whole download in one turn of the event loop.
        await nextTurn()
        await waitForTurn()
        const { value, done } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: reason => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
