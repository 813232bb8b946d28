import { API_KEY_PATTERN } from '@keyway/sdk/protocol'
import { SECOND } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Storage } from '../store.ts'

/** A node that missed the event of an import, or of the end of the last imported key, has it after this time. */
const RELOAD_INTERVAL = 10 * SECOND
const MAX_FOREIGN_LENGTH = 512
/** Starts of our own credentials that are no keys, and of JSON Web Tokens. */
const NO_KEY = /^(?:svr_|sva_|eyJ[\w-]*\.[\w-]*\.)/

/**
 * Whether there are keys of another system here, also revoked ones. While there are none, a text that is no key of ours is
 * refused without a read, so that imports cost nothing where nobody uses them.
 */
export interface ImportedKeys {
  load(): Promise<void>
  /** Reloads on `api_keys.imported` and on a timer, in case an event is lost. */
  start(): void
  stop(): void
  /** Whether the text is to be looked up as a key. */
  isPresentable(text: string): boolean
}

export function createImportedKeys({
  storage,
  log,
  reloadInterval = RELOAD_INTERVAL,
}: {
  storage: Storage
  log: Log
  /** In milliseconds; shorter where not every change causes an event. */
  reloadInterval?: number
}): ImportedKeys {
  let exist = false
  let timer: NodeJS.Timeout | undefined
  let unsubscribe = () => {}
  let isFailing = false

  return {
    load,

    start() {
      unsubscribe = storage.events.subscribe(({ type }) => {
        if (type === 'api_keys.imported' || type === 'events.gap') void refresh()
      })
      timer = setInterval(refresh, reloadInterval).unref()
    },

    stop() {
      unsubscribe()
      clearInterval(timer)
    },

    isPresentable: text => isKeyOfOurs(text) || (exist && isForeign(text)),
  }

  async function load(): Promise<void> {
    exist = await storage.store.apiKeys.hasImported()
  }

  async function refresh(): Promise<void> {
    try {
      await load()
      isFailing = false
    } catch (error) {
      // Logged once per outage: the interval may be as short as half a second.
      if (!isFailing) log.error({ error: String(error) }, 'whether there are imported keys could not be read')
      isFailing = true
    }
  }
}

/** No trimming, no case folding: a key has exactly one text form. */
function isKeyOfOurs(text: unknown): boolean {
  return typeof text === 'string' && API_KEY_PATTERN.test(text)
}

/** Bounded before it is hashed. */
function isForeign(text: unknown): boolean {
  return (
    typeof text === 'string' && text.length > 0 && text.length <= MAX_FOREIGN_LENGTH && !NO_KEY.test(text)
  )
}
