import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import type { Event } from '../events.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type Ending, refusalOfKey } from './close-codes.ts'
import type { DatabaseSight } from './database-sight.ts'
import type { HubQuestions } from './hub-questions.ts'
import type { Registry } from './registry.ts'
import type { StandingQuestions } from './standing-questions.ts'

/** How often a node looks: what only the database tells of (a lost event, a command beside a server) is seen by then. */
export const SWEEP_MS = SECOND
/** How far back each look reads: a transaction lands later than the instant that it wrote. */
export const SWEEP_WINDOW_MS = MINUTE
const PAGE = 1000

export interface Revocations {
  /** Of the events that reach this node: asks about the keys of which one tells. */
  hear(event: Event): void
  /** One sweep of the database. Never rejects; a look that is still under way is not doubled. */
  look(): Promise<void>
}

/**
 * How the end of a key or an account (or of what it allowed) reaches the connections that it holds: at once by an
 * event, and for certain by the sweep, which reads the endings of the last minute. Either only has the key asked
 * about, and the answer decides. Each ending is acted on once.
 */
export function createRevocations(deps: {
  questions: Pick<HubQuestions, 'endingsSince'>
  clock: Clock
  registry: Registry
  standings: Pick<StandingQuestions, 'ask'>
  /** Told of every look that succeeded. */
  sight: Pick<DatabaseSight, 'looked'>
  end(connection: AgentConnection, ending: Ending): void
}): Revocations {
  const { questions, clock, registry, standings, sight, end } = deps
  const seen = new Map<string, Instant>()
  let looking: Promise<void> | null = null

  return {
    hear(event) {
      if (event.type === 'events.gap') recheck(registry.keys())
      else if (event.type === 'api_key.changed' && registry.holdsKey(event.keyId)) recheck([event.keyId])
      else if (event.type === 'user.changed') recheck(registry.keysOf(event.userId))
    },
    look() {
      looking ??= lookOnce()
        .catch(() => {}) // the next look tries again, and 10 s without one ends every connection
        .finally(() => {
          looking = null
        })
      return looking
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
    sight.looked(began)
    recheck(affected)
  }

  /** Asks how keys stand now, and ends the connections of those that do not. */
  function recheck(keyIds: Iterable<string>): void {
    for (const keyId of keyIds) void recheckKey(keyId)
  }

  async function recheckKey(keyId: string): Promise<void> {
    for (const connection of registry.ofKey(keyId)) connection.askAgain = true
    const standing = await standings.ask(keyId)
    const now = clock.now()
    for (const connection of registry.ofKey(keyId)) {
      if (connection.keyId !== keyId) continue
      const refused = refusalOfKey(standing, connection, now)
      if (refused) end(connection, refused)
      else if (connection.state === 'open') connection.accept(standing!)
    }
  }
}
