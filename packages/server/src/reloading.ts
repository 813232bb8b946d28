import { SECOND } from './clock.ts'
import type { Event } from './events.ts'
import type { Log } from './log.ts'
import type { Storage } from './store.ts'

/** Interval of reloads: a node that missed the event of a change sees the change after at most this time. */
export const RELOAD_INTERVAL = 10 * SECOND

/** Keeps a node's in-memory copy of stored values up to date. */
export interface Reloading {
  start(): void
  stop(): void
}

/**
 * Reloads on an event, when events may have been lost, and at intervals.
 *
 * @param interval in milliseconds; shorter with SQLite, where commands make changes without an event
 * @param on the type of the event that announces a change
 * @param failure the log message for a reload that failed
 */
export function createReloading({
  storage,
  log,
  interval = RELOAD_INTERVAL,
  on,
  reload,
  failure,
}: {
  storage: Pick<Storage, 'events'>
  log: Log
  interval?: number
  on: Event['type']
  reload(): Promise<void>
  failure: string
}): Reloading {
  let timer: NodeJS.Timeout | undefined
  let unsubscribe = () => {}
  let isFailing = false

  return {
    start() {
      unsubscribe = storage.events.subscribe(({ type }) => {
        if (type === on || type === 'events.gap') void refresh()
      })
      timer = setInterval(refresh, interval).unref()
    },

    stop() {
      unsubscribe()
      clearInterval(timer)
    },
  }

  async function refresh(): Promise<void> {
    try {
      await reload()
      isFailing = false
    } catch (error) {
      // Logged once per outage: the interval may be as short as half a second.
      if (!isFailing) log.error({ error: String(error) }, failure)
      isFailing = true
    }
  }
}
