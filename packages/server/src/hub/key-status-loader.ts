import { setTimeout as wait } from 'node:timers/promises'
import type { HubPorts, KeyStatus } from './hub-ports.ts'

/** Maximum number of keys per query. */
const BATCH_SIZE = 500
const RETRY_MS = 500

export interface KeyStatusLoader {
  /**
   * The status of a key, read after this call; undefined for an unknown one. Calls of one turn of the event loop share
   * one query, which is retried while the database does not answer. Meanwhile connection-checks.ts closes connections
   * that wait for too long.
   */
  load(keyId: string): Promise<KeyStatus | undefined>
  /**
   * Like `load`, for a connection that is registered under the key: also awaits `otherWork`, and loads the status again
   * if the key changed meanwhile.
   */
  loadFor(
    connection: { statusIsStale: boolean },
    keyId: string,
    otherWork?: Promise<unknown>,
  ): Promise<KeyStatus | undefined>
  /** Stops querying. Pending loads never settle, unless the database is answering their query already. */
  stop(): void
}

type ResolveStatus = (status: KeyStatus | undefined) => void

export function createKeyStatusLoader(ports: Pick<HubPorts, 'keyStatus'>): KeyStatusLoader {
  /** The `resolve` functions of the loads that await the next query, by key id. */
  let pendingLoads = new Map<string, ResolveStatus[]>()
  let isStopped = false

  return {
    load,
    async loadFor(connection, keyId, otherWork) {
      for (;;) {
        connection.statusIsStale = false
        const status = await load(keyId)
        if (otherWork) await otherWork
        if (!connection.statusIsStale) return status
      }
    },
    stop() {
      isStopped = true
      pendingLoads.clear()
    },
  }

  function load(keyId: string): Promise<KeyStatus | undefined> {
    return new Promise(resolve => {
      if (pendingLoads.size === 0) setImmediate(loadAll)
      const resolvers = pendingLoads.get(keyId)
      if (resolvers) resolvers.push(resolve)
      else pendingLoads.set(keyId, [resolve])
    })
  }

  function loadAll(): void {
    const loads = [...pendingLoads]
    pendingLoads = new Map()
    for (let from = 0; from < loads.length; from += BATCH_SIZE)
      void loadBatch(loads.slice(from, from + BATCH_SIZE))
  }

  async function loadBatch(batch: [string, ResolveStatus[]][]): Promise<void> {
    const keyIds = batch.map(([keyId]) => keyId)
    while (!isStopped) {
      const statuses = await ports.keyStatus(keyIds).catch(() => null)
      if (statuses) {
        for (const [keyId, resolvers] of batch) for (const resolve of resolvers) resolve(statuses.get(keyId))
        return
      }
      await wait(RETRY_MS, undefined, { ref: false })
    }
  }
}
