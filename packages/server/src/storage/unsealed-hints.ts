import { type Event, type Hint, parseHint } from '../events.ts'

/** A hint has two ids; nothing longer is parsed. */
const MAX_HINT_CHARACTERS = 300
/**
 * Interval at which unsealed hints are delivered, without duplicates. Anyone can forge them, and each may cause a
 * query.
 */
const DELIVERY_INTERVAL_MS = 250
/** Maximum number of distinct hints per interval. The sweep covers dropped ones. */
const MAX_HINTS = 500

/** The channel of the previous minor version. Its events are not authenticated. */
export const UNSEALED_CHANNEL = 'keyway'

export interface UnsealedHints {
  /** Null if the text is no hint, false if there are too many. */
  receive(text: string): boolean | null
  stop(): void
}

/** The hints among these events; only hints may be published unsealed. */
export function hintsAmong(events: readonly Event[]): Hint[] {
  return events.flatMap(event => parseHint(event) ?? [])
}

/**
 * Receives unsealed hints while a node of the previous minor version is listed. They are delivered four times a second
 * without duplicates, so that forged hints cause a bounded number of queries.
 */
export function createUnsealedHints(deliver: (hint: Hint) => void): UnsealedHints {
  let waiting = new Map<string, Hint>()
  let timer: NodeJS.Timeout | undefined

  return {
    receive(text) {
      const hint = parse(text)
      if (!hint) return null
      const name = JSON.stringify(hint)
      if (waiting.has(name)) return true
      if (waiting.size >= MAX_HINTS) return false
      waiting.set(name, hint)
      timer ??= setTimeout(passOn, DELIVERY_INTERVAL_MS).unref()
      return true
    },
    stop() {
      clearTimeout(timer)
      waiting.clear()
    },
  }

  function passOn(): void {
    const hints = waiting
    waiting = new Map()
    timer = undefined
    for (const hint of hints.values()) deliver(hint)
  }
}

function parse(text: string): Hint | null {
  if (text.length > MAX_HINT_CHARACTERS) return null
  try {
    return parseHint(JSON.parse(text))
  } catch {
    return null
  }
}
