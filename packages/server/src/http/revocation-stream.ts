import { SECOND } from '../clock.ts'

interface Feed {
  data: readonly { id: string }[]
  has_more: boolean
  next_cursor: string
}

/** How often a follower's credential is checked while nothing happens: as often as the hub sweeps for endings. */
const RECHECK_MS = SECOND
/**
 * Interval of keep-alive comments, so that proxies do not close an idle stream, and of polling for endings without an
 * event.
 */
const KEEP_ALIVE_MS = 15 * SECOND
/** Lines that wait for a reader at most; one that is slower is better served by connecting anew with its last id. */
const MAX_UNREAD = 10_000
/** Entries sent lately; the feed re-reads its last seconds, and a follower need not get everything twice. */
const REMEMBERED = 1000

export interface StreamSource {
  /** Entries that were read before the stream began. */
  first: Feed
  read(cursor: string): Promise<Feed>
  /** Rejects once the follower's credential is no longer good: the stream ends then, before anything more is sent. */
  reauthenticate(): Promise<unknown>
  /** Calls `listener` when something ended. Returns the way to stop. */
  subscribe(listener: () => void): () => void
  /** Called once, however the stream ends. */
  onEnd(): void
}

/**
 * Server-sent events (HTML standard, section 9.2): one `revocation` for each entry. The id of each is the
 * cursor of the reading that found it, so a client that reconnects with Last-Event-ID misses nothing.
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
      // What ended between the first reading and the subscription.
      void follow(send, end)
    },
    cancel: () => release(),
  })

  /** Reads are serialized; events during one cause another. A failed read ends the stream. */
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
