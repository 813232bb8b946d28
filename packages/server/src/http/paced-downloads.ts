import type { IncomingMessage } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Answer } from './answer.ts'
import type { FairQueue, Flow } from './fair-queue.ts'
import { overloaded } from './work-limit.ts'

export interface Pacing {
  /** A stream that is a file as one whose pieces wait for their turns; other answers as they are. */
  ofAnswer(answer: Answer, incoming: IncomingMessage): Answer
  /** The same for the answer of a page. */
  ofPage(response: Response, incoming: IncomingMessage): Response
}

/**
 * Reads each piece of a download in a turn of its own, for which it waits as requests of its client do: else one account
 * with long lists, which reads them again and again, would leave nothing of the event loop to others.
 */
export function createPacing(
  fairQueue: Pick<FairQueue, 'startLong'>,
  flowOf: (incoming: IncomingMessage) => Flow,
): Pacing {
  return {
    ofAnswer(answer, incoming) {
      const { body, type } = answer
      const isDownload = body instanceof ReadableStream && type !== 'text/event-stream'
      return isDownload ? { ...answer, body: paced(body, turnsOf(incoming)) } : answer
    },
    ofPage(response, incoming) {
      const isDownload = response.headers.has('Content-Disposition') && response.body !== null
      return isDownload ? new Response(paced(response.body!, turnsOf(incoming)), response) : response
    },
  }

  function turnsOf(incoming: IncomingMessage): () => Promise<void> {
    // Who disconnects ends the download, and its turn comes to nothing.
    const flow = { ...flowOf(incoming), whenGone: () => {} }
    return () =>
      new Promise((resolve, reject) => {
        if (!fairQueue.startLong(flow, resolve)) reject(overloaded())
      })
  }
}

/** Nothing is read ahead of the client but what the stream itself does. */
function paced(download: ReadableStream, turn: () => Promise<void>): ReadableStream {
  const reader = download.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        // Else a client that takes all at once would get it in one turn of the event loop.
        await nextTurn()
        await turn()
        const { value, done } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: reason => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
