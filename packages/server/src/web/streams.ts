import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import { SECOND } from '../clock.ts'
import type { Log } from '../log.ts'

/** How often a stream looks again; what it shows is at most this old, whichever node it happened on. */
const LOOK_AGAIN_MS = SECOND
/**
 * A stream ends by itself and the browser opens a new one: before the minute after which proxies cut silent answers,
 * and so that none is held open by a forgotten peer.
 */
const ROUNDS = 50
/** Streams that one person may hold: two browsers full, since a browser opens no more than six connections to a server. */
export const MAX_STREAMS_PER_OWNER = 12
/** Streams of this node; each reads the database twice a second. Over it the oldest ends, and its browser comes again. */
export const MAX_STREAMS = 500

export type Send = (event: string, data: string) => Promise<void>
/** One look. `false` ends the stream. */
export type Look = (send: Send) => Promise<boolean>

export interface Streams {
  /** Server-sent events from `look`, once a second for as long as the page listens. */
  serve(c: Context, owner: string, look: Look): Response
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
  /** In the order of their beginnings; aborting one ends it. */
  const open = new Set<AbortController>()

  return {
    serve(c, owner, look) {
      // HEAD asks what GET would say, and nobody would read what follows.
      if (c.req.method === 'HEAD') return c.body(null, 200, { 'Content-Type': 'text/event-stream' })
      const count = held.get(owner) ?? 0
      // 204 tells an EventSource not to come again.
      if (stopping.aborted || count >= MAX_STREAMS_PER_OWNER) return c.body(null, 204)
      held.set(owner, count + 1)
      c.header('X-Accel-Buffering', 'no') // a proxy that gathers answers would hold events back
      return streamSSE(
        c,
        async stream => {
          const gone = begin()
          stream.onAbort(() => gone.abort())
          const ended = AbortSignal.any([stopping, gone.signal])
          const send: Send = (event, data) => stream.writeSSE({ event, data: data.replaceAll('\r', '') })
          try {
            for (let round = 0; round < ROUNDS && !ended.aborted; round++) {
              if (!(await look(send))) return
              await wait(LOOK_AGAIN_MS, undefined, { signal: ended }).catch(() => {})
            }
          } finally {
            open.delete(gone)
            release(owner)
          }
        },
        async error => log.warn({ err: error.name }, 'a page could not be kept up to date'),
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
