import { type Event, type Hint, parseHint } from '../events.ts'

/** Maximum length of a hint (`Hint` in events.ts) as JSON, which has at most two ids. Longer texts are not parsed. */
const MAX_HINT_CHARACTERS = 300
const DELIVERY_INTERVAL_MS = 250
/** Maximum number of distinct hints per interval. Further ones are dropped; periodic reads find what they reported. */
const MAX_HINTS = 500

/** The channel of the previous minor version. Its events are not authenticated. */
export const UNSEALED_CHANNEL = 'keyway'

export interface UnsealedHints {
  /** Returns true if the `Hint` will be delivered, false if too many others wait, and null if the text is no `Hint`. */
  receive(text: string): boolean | null
  stop(): void
}

/** The hints among these events. Only hints may be published without a seal. */
export function hintsAmong(events: readonly Event[]): Hint[] {
  return events.flatMap(event => parseHint(event) ?? [])
}

/**
 * Receives unsealed hints (`Hint` in events.ts) while a node of the previous minor version exists, which cannot seal
 * events. They are delivered at intervals and without duplicates, since they may be forged and cause queries.
 */
export function createUnsealedHints(deliver: (hint: Hint) => void): UnsealedHints {
  /** Hints that wait for the next delivery, by their JSON text. */
  let pendingHints = new Map<string, Hint>()
  let timer: NodeJS.Timeout | undefined

  return {
    receive(text) {
      const hint = parse(text)
      if (!hint) return null
      const key = JSON.stringify(hint)
      if (pendingHints.has(key)) return true
      if (pendingHints.size >= MAX_HINTS) return false
      pendingHints.set(key, hint)
      timer ??= setTimeout(deliverPending, DELIVERY_INTERVAL_MS).unref()
      return true
    },
    stop() {
      clearTimeout(timer)
      pendingHints.clear()
    },
  }

  function deliverPending(): void {
    const hints = pendingHints
    pendingHints = new Map()
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
