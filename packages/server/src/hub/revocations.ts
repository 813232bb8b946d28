import { type Clock, MINUTE, SECOND } from '../clock.ts'
import type { Event } from '../events.ts'
import { refusalOfKey } from './close-codes.ts'
import type { DatabaseFreshness } from './database-freshness.ts'
import type { HubPorts } from './hub-ports.ts'
import type { KeyStatusLoader } from './key-status-loader.ts'
import type { Registry } from './registry.ts'

/**
 * How often a node polls for endings whose event was lost, or was never sent, for example by a command line tool that
 * runs beside a server on SQLite.
 */
export const SWEEP_MS = SECOND
/** How far back each sweep reads: a transaction may commit long after the time that it recorded. */
export const SWEEP_WINDOW_MS = MINUTE
const PAGE_SIZE = 1000

export interface Revocations {
  /** Rechecks the keys that an event concerns. */
  receive(event: Event): void
  /** Loads the status of a key, and closes its connections if it may no longer be used. */
  recheck(keyId: string): void
  /** Sweeps the database once. Never rejects; concurrent calls share one sweep. */
  sweep(): Promise<void>
}

/**
 * Closes the connections of a key when the key or its account ends or is restricted: at once on an event, and reliably
 * by the sweep, which reads the endings of the last minute. Both load the key's status, which decides whether its
 * connections are closed. Each ending is processed once.
 */
export function createRevocations(deps: {
  ports: Pick<HubPorts, 'endingsSince'>
  clock: Clock
  registry: Registry
  keyStatuses: Pick<KeyStatusLoader, 'load'>
  /** Called after each successful sweep. */
  freshness: Pick<DatabaseFreshness, 'polled'>
}): Revocations {
  const { ports, clock, registry, keyStatuses, freshness } = deps
  /** Ids of the endings that the last successful sweep read, all of which have been processed. */
  let processedIds: ReadonlySet<string> = new Set()
  let currentSweep: Promise<void> | null = null

  return {
    receive(event) {
      if (event.type === 'events.gap') recheckAll(registry.keyIds())
      else if (event.type === 'api_key.changed' && registry.hasKey(event.keyId)) recheckAll([event.keyId])
      else if (event.type === 'user.changed') recheckAll(registry.keyIdsOf(event.userId))
    },
    recheck: keyId => void recheckKey(keyId),
    sweep() {
      currentSweep ??= sweepOnce()
        .catch(() => {}) // retried by the next sweep; after 10 s without success every connection is closed
        .finally(() => {
          currentSweep = null
        })
      return currentSweep
    },
  }

  async function sweepOnce(): Promise<void> {
    const startedAt = clock.now()
    const readIds = new Set<string>()
    const affectedKeyIds = new Set<string>()
    let since = startedAt - SWEEP_WINDOW_MS
    let afterId: string | null = null
    for (;;) {
      const endings = await ports.endingsSince(since, afterId, PAGE_SIZE)
      for (const ending of endings) {
        readIds.add(ending.id)
        if (processedIds.has(ending.id)) continue
        if (ending.kind === 'api_key' && registry.hasKey(ending.subjectId))
          affectedKeyIds.add(ending.subjectId)
        if (ending.kind === 'user')
          for (const keyId of registry.keyIdsOf(ending.userId)) affectedKeyIds.add(keyId)
      }
      const last = endings.at(-1)
      if (!last || endings.length < PAGE_SIZE) break
      since = last.at
      afterId = last.id
    }
    // Not before the last page has been read: if a read fails, the next sweep processes the endings before it, too.
    processedIds = readIds
    freshness.polled(startedAt)
    recheckAll(affectedKeyIds)
  }

  function recheckAll(keyIds: Iterable<string>): void {
    for (const keyId of keyIds) void recheckKey(keyId)
  }

  async function recheckKey(keyId: string): Promise<void> {
    for (const connection of registry.ofKey(keyId)) connection.statusIsStale = true
    const key = await keyStatuses.load(keyId)
    const now = clock.now()
    for (const connection of registry.ofKey(keyId)) {
      if (connection.keyId !== keyId) continue
      const refusal = refusalOfKey(key, connection, now)
      if (refusal) connection.close(refusal)
      else connection.update(key!)
    }
  }
}
