import { SECOND } from '../clock.ts'

/** One page of the feed of revocations, oldest first. */
interface FeedPage {
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
const MAX_UNREAD_LINES = 10_000
/**
 * Number of sent entries whose ids are remembered. Each read of the feed begins a few seconds before the end of the
 * previous one, so entries that were sent already are skipped.
 */
const MAX_REMEMBERED_IDS = 1000

export interface StreamSource {
  /** The page of entries that is sent first. */
  firstPage: FeedPage
  read(cursor: string): Promise<FeedPage>
  /** Rejects if the client's credential is no longer valid; the stream then ends before it sends anything else. */
  reauthenticate(): Promise<unknown>
  /** Calls `listener` when a key, session or account ended. Returns a function to unsubscribe. */
  subscribe(listener: () => void): () => void
  /** Called once, at the end of the stream. */
  onEnd(): void
}

/**
 * Server-sent events (HTML standard, section 9.2): one event `revocation` per entry. The id of an event is the cursor
 * of the page that contained it, so a client that reconnects with Last-Event-ID misses nothing.
 */
export function eventStream(source: StreamSource): ReadableStream {
  const encoder = new TextEncoder()
  const sentIds = new Set<string>()
  let cursor = source.firstPage.next_cursor
  let isOpen = true
  let isReading = false
  let mustReadAgain = false
  let cleanUp = () => {}

  return new ReadableStream({
    start(controller) {
      const end = () => {
        if (isOpen) controller.close()
        cleanUp()
      }
      const send = (line: string) => {
        if (isOpen) controller.enqueue(encoder.encode(line))
        if ((controller.desiredSize ?? 0) < -MAX_UNREAD_LINES) end()
      }
      const unsubscribe = source.subscribe(() => void sendNewEntries(send, end))
      const credentialCheck = setInterval(() => source.reauthenticate().catch(end), RECHECK_MS)
      const keepAlive = setInterval(() => {
        send(': alive\n\n')
        void sendNewEntries(send, end)
      }, KEEP_ALIVE_MS)
      credentialCheck.unref()
      keepAlive.unref()
      cleanUp = () => {
        isOpen = false
        clearInterval(credentialCheck)
        clearInterval(keepAlive)
        unsubscribe()
        cleanUp = () => {}
        source.onEnd()
      }
      send('retry: 1000\n\n')
      sendEntries(source.firstPage, send)
      // This also sends entries that were added between the first page and the subscription.
      void sendNewEntries(send, end)
    },
    cancel: () => cleanUp(),
  })

  /**
   * Sends new entries. Only one read runs at a time: a call during a read causes another read after it. A failed read
   * ends the stream.
   */
  async function sendNewEntries(send: (line: string) => void, end: () => void): Promise<void> {
    mustReadAgain = true
    if (isReading) return
    isReading = true
    try {
      while (mustReadAgain && isOpen) {
        mustReadAgain = false
        await source.reauthenticate()
        const feed = await source.read(cursor)
        sendEntries(feed, send)
        if (feed.has_more && feed.next_cursor !== cursor) mustReadAgain = true
        cursor = feed.next_cursor
      }
    } catch {
      end()
    } finally {
      isReading = false
    }
  }

  function sendEntries(feed: FeedPage, send: (line: string) => void): void {
    for (const entry of feed.data) {
      if (sentIds.has(entry.id)) continue
      sentIds.add(entry.id)
      if (sentIds.size > MAX_REMEMBERED_IDS) sentIds.delete(sentIds.values().next().value!)
      send(`id: ${feed.next_cursor}\nevent: revocation\ndata: ${JSON.stringify(entry)}\n\n`)
    }
  }
}
