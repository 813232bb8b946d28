import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import { SECOND } from '../clock.ts'
import type { Log } from '../log.ts'

/** Polling interval of a stream, and so the maximum age of what it shows, whichever node changed it. */
const POLL_INTERVAL_MS = SECOND
/**
 * Maximum number of polls of a stream, one a second, after which the browser opens a new one: less than the minute
 * after which proxies close idle responses. It also bounds how long a stream stays open for a peer that has vanished.
 */
const MAX_POLLS = 50
/**
 * Maximum streams per owner on a node: enough for two browsers, which open at most six connections each to a server.
 * An owner is a user, or the local inbox.
 */
export const MAX_STREAMS_PER_OWNER = 12
/**
 * Maximum streams per node; each reads the database every second. Beyond it the oldest is closed, and its browser
 * reconnects.
 */
export const MAX_STREAMS = 500

/** How long a browser waits before it connects again; soon, since every stream ends after `MAX_POLLS`. */
const RETRY_MS = 500

/** Sends an event. A browser that connects again sends its `id` back as `Last-Event-ID`. */
export type Send = (event: string, data: string, id?: string) => Promise<void>
/** Sends what has changed since the last call. Returns false to end the stream. */
export type Poll = (send: Send) => Promise<boolean>

export interface Streams {
  /**
   * Responds with the server-sent events of `poll`, which is called once a second until it returns false, the page
   * disconnects, or MAX_POLLS is reached. Responds with 204 if the owner has too many streams or the process stops.
   *
   * @param owner a user's id, or `inbox`; the streams of each owner are limited
   */
  serve(c: Context, owner: string, poll: Poll): Response
}

export function createStreams({
  stopping,
  log,
  maxStreams = MAX_STREAMS,
}: {
  stopping: AbortSignal
  log: Log
  maxStreams?: number
}): Streams {
  /** The number of open streams of each owner. */
  const streamCounts = new Map<string, number>()
  /** The open streams, oldest first; aborting a controller ends its stream. */
  const openStreams = new Set<AbortController>()

  return {
    serve(c, owner, poll) {
      // HEAD has the headers of GET without a body.
      if (c.req.method === 'HEAD') return c.body(null, 200, { 'Content-Type': 'text/event-stream' })
      const count = streamCounts.get(owner) ?? 0
      // 204 makes an EventSource stop reconnecting.
      if (stopping.aborted || count >= MAX_STREAMS_PER_OWNER) return c.body(null, 204)
      streamCounts.set(owner, count + 1)
      c.header('X-Accel-Buffering', 'no') // a buffering proxy would delay events
      return streamSSE(
        c,
        async stream => {
          const controller = registerStream()
          stream.onAbort(() => controller.abort())
          const endSignal = AbortSignal.any([stopping, controller.signal])
          const send: Send = (event, data, id) =>
            stream.writeSSE({ event, data: data.replaceAll('\r', ''), ...(id && { id }), retry: RETRY_MS })
          try {
            for (let round = 0; round < MAX_POLLS && !endSignal.aborted; round++) {
              if (!(await poll(send))) return
              await wait(POLL_INTERVAL_MS, undefined, { signal: endSignal }).catch(() => {})
            }
          } finally {
            openStreams.delete(controller)
            uncountStream(owner)
          }
        },
        async error => log.warn({ err: error.name }, 'the event stream of a page failed'),
      )
    },
  }

  function registerStream(): AbortController {
    const controller = new AbortController()
    openStreams.add(controller)
    if (openStreams.size > maxStreams) {
      const [oldest] = openStreams
      openStreams.delete(oldest!)
      oldest!.abort()
    }
    return controller
  }

  function uncountStream(owner: string): void {
    const newCount = (streamCounts.get(owner) ?? 1) - 1
    if (newCount > 0) streamCounts.set(owner, newCount)
    else streamCounts.delete(owner)
  }
}
