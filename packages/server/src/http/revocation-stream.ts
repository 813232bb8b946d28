import { SECOND } from '../clock.ts'

interface Feed {
  data: readonly { id: string }[]
  has_more: boolean
  next_cursor: string
}

/** How often the client's credential is checked while the stream is idle: as often as the hub sweeps for endings. */
const RECHECK_MS = SECOND
/**
 * Interval of keep-alive comments, so that proxies do not close an idle stream, and of polls for endings whose event
 * was lost.
 */
const KEEP_ALIVE_MS = 15 * SECOND
/**
 * Maximum number of lines buffered for a slow client; beyond it the stream ends, and the client may resume it by its
 * last event id.
 */
const MAX_UNREAD = 10_000
/**
 * Number of sent entries whose ids are remembered: the feed is read again from a few seconds back, and entries that
 * were sent are skipped.
 */
const REMEMBERED = 1000

export interface StreamSource {
  /** The first page of entries. */
  first: Feed
  read(cursor: string): Promise<Feed>
  /** Rejects if the client's credential is no longer valid; the stream then ends before it sends anything else. */
  reauthenticate(): Promise<unknown>
  /** Calls `listener` when something ended. Returns a function to unsubscribe. */
  subscribe(listener: () => void): () => void
  /** Called once, at the end of the stream. */
  onEnd(): void
}

/**
 * Server-sent events (HTML standard, section 9.2): one `revocation` per entry. The id of an event is the cursor of the
 * page that contained it, so a client that reconnects with Last-Event-ID misses nothing.
 */
export function eventStream(source: StreamSource): ReadableStream {
  const encoder = new TextEncoder()
  const sent = new Set<string>()
  let cursor = source.first.next_cursor
  let isOpen = true
  let isReading = false
  let isStale = false
  let release = () => {}

  return new ReadableStream({
    start(controller) {
      const end = () => {
        if (isOpen) controller.close()
        release()
      }
      const send = (line: string) => {
        if (isOpen) controller.enqueue(encoder.encode(line))
        if ((controller.desiredSize ?? 0) < -MAX_UNREAD) end()
      }
      const unsubscribe = source.subscribe(() => void follow(send, end))
      const recheck = setInterval(() => source.reauthenticate().catch(end), RECHECK_MS)
      const keepAlive = setInterval(() => {
        send(': alive\n\n')
        void follow(send, end)
      }, KEEP_ALIVE_MS)
      recheck.unref()
      keepAlive.unref()
      release = () => {
        isOpen = false
        clearInterval(recheck)
        clearInterval(keepAlive)
        unsubscribe()
        release = () => {}
        source.onEnd()
      }
      send('retry: 1000\n\n')
      sendEntries(source.first, send)
      // Also sends entries that were added between the first page and the subscription.
      void follow(send, end)
    },
    cancel: () => release(),
  })

  /** Sends new entries. One read at a time; an event during a read causes another. A failed read ends the stream. */
  async function follow(send: (line: string) => void, end: () => void): Promise<void> {
    isStale = true
    if (isReading) return
    isReading = true
    try {
      while (isStale && isOpen) {
        isStale = false
        await source.reauthenticate()
        const feed = await source.read(cursor)
        sendEntries(feed, send)
        if (feed.has_more && feed.next_cursor !== cursor) isStale = true
        cursor = feed.next_cursor
      }
    } catch {
      end()
    } finally {
      isReading = false
    }
  }

  function sendEntries(feed: Feed, send: (line: string) => void): void {
    for (const entry of feed.data) {
      if (sent.has(entry.id)) continue
      sent.add(entry.id)
      if (sent.size > REMEMBERED) sent.delete(sent.values().next().value!)
      send(`id: ${feed.next_cursor}\nevent: revocation\ndata: ${JSON.stringify(entry)}\n\n`)
    }
  }
}
