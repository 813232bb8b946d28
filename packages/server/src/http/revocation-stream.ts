interface Feed {
  data: readonly { id: string }[]
  has_more: boolean
  next_cursor: string
}

/** A comment this often keeps proxies from cutting a quiet stream, and finds endings that no event told of. */
const KEEP_ALIVE_MS = 15_000
/** Lines that wait for a reader at most; one that is slower is better served by connecting anew with its last id. */
const MAX_UNREAD = 10_000
/** Entries told lately; the feed re-reads its last seconds, and a follower need not hear everything twice. */
const REMEMBERED = 1000

/**
 * Server-sent events (HTML standard, section 9.2): one `revocation` for each entry. The id of each is the
 * cursor of the reading that found it, so a client that reconnects with Last-Event-ID misses nothing.
 */
export function eventStream({
  first,
  read,
  subscribe,
}: {
  first: Feed
  read: (cursor: string) => Promise<Feed>
  subscribe: (listener: () => void) => () => void
}): ReadableStream {
  const encoder = new TextEncoder()
  const told = new Set<string>()
  let cursor = first.next_cursor
  let stop = () => {}
  let isOpen = true
  let reading = false
  let again = false

  return new ReadableStream({
    start(controller) {
      const end = () => {
        stop()
        if (isOpen) controller.close()
        isOpen = false
      }
      // A reader may leave, or stop reading, at any moment; nothing is kept for it beyond a bound.
      const tell = (line: string) => {
        if (isOpen) controller.enqueue(encoder.encode(line))
        if ((controller.desiredSize ?? 0) < -MAX_UNREAD) end()
      }
      const unsubscribe = subscribe(() => void follow(tell, end))
      const timer = setInterval(() => {
        tell(': alive\n\n')
        void follow(tell, end)
      }, KEEP_ALIVE_MS)
      timer.unref()
      stop = () => {
        clearInterval(timer)
        unsubscribe()
        stop = () => {}
      }
      tell('retry: 1000\n\n')
      tellEntries(first, tell)
      // What ended between the first reading and the subscription.
      void follow(tell, end)
    },
    cancel() {
      isOpen = false
      stop()
    },
  })

  /** One reading at a time; what happens meanwhile is read right after it. An unreadable store ends the stream. */
  async function follow(tell: (line: string) => void, end: () => void): Promise<void> {
    again = true
    if (reading) return
    reading = true
    try {
      while (again && isOpen) {
        again = false
        const feed = await read(cursor)
        tellEntries(feed, tell)
        if (feed.has_more && feed.next_cursor !== cursor) again = true
        cursor = feed.next_cursor
      }
    } catch {
      end()
    } finally {
      reading = false
    }
  }

  function tellEntries(feed: Feed, tell: (line: string) => void): void {
    for (const entry of feed.data) {
      if (told.has(entry.id)) continue
      told.add(entry.id)
      if (told.size > REMEMBERED) told.delete(told.values().next().value!)
      tell(`id: ${feed.next_cursor}\nevent: revocation\ndata: ${JSON.stringify(entry)}\n\n`)
    }
  }
}
