import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import type { HubQuestions } from './hub-questions.ts'
import type { Registry } from './registry.ts'

/** How far back each look reads: a transaction lands later than the instant that it wrote. */
export const SWEEP_WINDOW_MS = MINUTE
/** A node that had no successful look for this long cannot say that its keys still stand. */
export const BLIND_AFTER_MS = 10 * SECOND
const PAGE = 1000

export interface Sweep {
  /** Looks once. Never rejects; a look that is still under way is not doubled. */
  look(): Promise<void>
  /** Whether revocations would be seen: the last successful look is less than 10 s old. */
  canSee(now: Instant): boolean
  readonly lastLook: Instant | null
}

/**
 * What makes revocation certain where events only make it fast: reads the endings of the last minute and has
 * every key that is held here and named there asked about. Each ending is acted on once.
 */
export function createSweep(deps: {
  questions: Pick<HubQuestions, 'endingsSince'>
  clock: Clock
  registry: Registry
  recheck(keyIds: readonly string[]): void
}): Sweep {
  const { questions, clock, registry, recheck } = deps
  const seen = new Map<string, Instant>()
  let lastLook: Instant | null = null
  let looking: Promise<void> | null = null

  return {
    look() {
      looking ??= lookOnce()
        .catch(() => {}) // the next look tries again, and 10 s without one ends every connection
        .finally(() => {
          looking = null
        })
      return looking
    },
    canSee: now => lastLook !== null && now - lastLook < BLIND_AFTER_MS,
    get lastLook() {
      return lastLook
    },
  }

  async function lookOnce(): Promise<void> {
    const began = clock.now()
    const affected = new Set<string>()
    let since = began - SWEEP_WINDOW_MS
    let afterId: string | null = null
    for (;;) {
      const endings = await questions.endingsSince(since, afterId, PAGE)
      for (const ending of endings) {
        if (seen.has(ending.id)) continue
        seen.set(ending.id, ending.at)
        if (ending.kind === 'api_key' && registry.holdsKey(ending.subjectId)) affected.add(ending.subjectId)
        if (ending.kind === 'user') for (const keyId of registry.keysOf(ending.userId)) affected.add(keyId)
      }
      const last = endings.at(-1)
      if (!last || endings.length < PAGE) break
      since = last.at
      afterId = last.id
    }
    for (const [id, at] of seen) if (at < began - 2 * SWEEP_WINDOW_MS) seen.delete(id)
    lastLook = began
    if (affected.size > 0) recheck([...affected])
  }
}
