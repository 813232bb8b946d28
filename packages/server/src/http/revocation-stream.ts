import { SECOND } from '../clock.ts'

/** One page of the feed of revocations, oldest first. */
interface StreamPage {
  /** Each entry, with the cursor of a page that begins after it. */
  entries: readonly { data: { id: string }; cursor: string }[]
  hasMore: boolean
  cursor: string
}

/** How often the client's credential is checked, besides the check before each read of the feed. */
const RECHECK_MS = SECOND
/**
 * Interval of keep-alive comments, so that proxies do not close an idle stream, and of polls for endings whose event
 * was lost.
 */
const KEEP_ALIVE_MS = 15 * SECOND
/**
 * Maximum number of events and comments buffered for a slow client; beyond it the stream ends, and the client may
 * resume it by its last event id.
 */
const MAX_UNREAD_CHUNKS = 10_000
/**
 * Number of sent entries whose ids are remembered. Each read of the feed begins a few seconds before the end of the
 * previous one, so entries that were sent already are skipped.
 */
const MAX_REMEMBERED_IDS = 1000

export interface StreamSource {
  /** The page of entries that is sent first. */
  firstPage: StreamPage
  read(cursor: string): Promise<StreamPage>
  /** Rejects if the client's credential is no longer valid; the stream then ends before it sends another entry. */
  reauthenticate(): Promise<unknown>
  /** Calls `listener` when there may be new entries. Returns a function to unsubscribe. */
  subscribe(listener: () => void): () => void
  /** Called once, at the end of the stream. */
  onEnd(): void
}

/**
 * Server-sent events (HTML standard, section 9.2): one event `revocation` per entry. Its id is the entry's cursor, so a
 * client that reconnects with Last-Event-ID misses nothing, wherever it was cut off.
 */
export function eventStream(source: StreamSource): ReadableStream {
  const encoder = new TextEncoder()
  const sentIds = new Set<string>()
  let cursor = source.firstPage.cursor
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
      const send = (chunk: string) => {
        if (isOpen) controller.enqueue(encoder.encode(chunk))
        if ((controller.desiredSize ?? 0) < -MAX_UNREAD_CHUNKS) end()
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
  async function sendNewEntries(send: (chunk: string) => void, end: () => void): Promise<void> {
    mustReadAgain = true
    if (isReading) return
    isReading = true
    try {
      while (mustReadAgain && isOpen) {
        mustReadAgain = false
        await source.reauthenticate()
        const page = await source.read(cursor)
        sendEntries(page, send)
        if (page.hasMore && page.cursor !== cursor) mustReadAgain = true
        cursor = page.cursor
      }
    } catch {
      end()
    } finally {
      isReading = false
    }
  }

  function sendEntries({ entries }: StreamPage, send: (chunk: string) => void): void {
    for (const { data, cursor } of entries) {
      if (sentIds.has(data.id)) continue
      sentIds.add(data.id)
      if (sentIds.size > MAX_REMEMBERED_IDS) sentIds.delete(sentIds.values().next().value!)
      send(`id: ${cursor}\nevent: revocation\ndata: ${JSON.stringify(data)}\n\n`)
    }
  }
}
