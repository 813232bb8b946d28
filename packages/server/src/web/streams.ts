import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import { SECOND } from '../clock.ts'
import type { Log } from '../log.ts'

/** Polling interval of a stream, and so the maximum age of what it shows, whichever node changed it. */
const POLL_AGAIN_MS = SECOND
/**
 * Maximum duration of a stream, after which the browser opens a new one: shorter than the minute after which proxies
 * close idle responses, and so that no stream stays open for a vanished peer.
 */
const ROUNDS = 50
/** Maximum streams per user: enough for two browsers, which open at most six connections each to a server. */
export const MAX_STREAMS_PER_OWNER = 12
/**
 * Maximum streams per node; each reads the database every second. Beyond it the oldest is closed, and its browser
 * reconnects.
 */
export const MAX_STREAMS = 500

/** How long a browser waits before it connects again; soon, since every stream ends after `ROUNDS`. */
const RETRY_MS = 500

/** `id`: sent back by the browser when it connects again, as `Last-Event-ID`. */
export type Send = (event: string, data: string, id?: string) => Promise<void>
/** One poll. `false` ends the stream. */
export type Poll = (send: Send) => Promise<boolean>

export interface Streams {
  /** Server-sent events from `poll`, called once a second while the page is connected. */
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
  const held = new Map<string, number>()
  /** In the order of their creation; aborting one ends it. */
  const open = new Set<AbortController>()

  return {
    serve(c, owner, poll) {
      // HEAD has the headers of GET without a body.
      if (c.req.method === 'HEAD') return c.body(null, 200, { 'Content-Type': 'text/event-stream' })
      const count = held.get(owner) ?? 0
      // 204 makes an EventSource stop reconnecting.
      if (stopping.aborted || count >= MAX_STREAMS_PER_OWNER) return c.body(null, 204)
      held.set(owner, count + 1)
      c.header('X-Accel-Buffering', 'no') // a buffering proxy would delay events
      return streamSSE(
        c,
        async stream => {
          const gone = begin()
          stream.onAbort(() => gone.abort())
          const ended = AbortSignal.any([stopping, gone.signal])
          const send: Send = (event, data, id) =>
            stream.writeSSE({ event, data: data.replaceAll('\r', ''), ...(id && { id }), retry: RETRY_MS })
          try {
            for (let round = 0; round < ROUNDS && !ended.aborted; round++) {
              if (!(await poll(send))) return
              await wait(POLL_AGAIN_MS, undefined, { signal: ended }).catch(() => {})
            }
          } finally {
            open.delete(gone)
            release(owner)
          }
        },
        async error => log.warn({ err: error.name }, 'the event stream of a page failed'),
      )
    },
  }

  function begin(): AbortController {
    const gone = new AbortController()
    open.add(gone)
    if (open.size > maxStreams) {
      const [oldest] = open
      open.delete(oldest!)
      oldest!.abort()
    }
    return gone
  }

  function release(owner: string): void {
    const left = (held.get(owner) ?? 1) - 1
    if (left > 0) held.set(owner, left)
    else held.delete(owner)
  }
}
