import { type Clock, SECOND } from '../clock.ts'
import type { Storage } from '../store.ts'
import type { ApiKey, UsedFrom } from './api-key.ts'
import type { RecordedUse } from './api-key-store.ts'
import type { KeyNotices } from './key-notices.ts'

/** Interval of `flushUses`: a use is stored within the promised 10 s even if a commit is slow. */
export const USE_FLUSH_INTERVAL = 5 * SECOND
/** Maximum number of keys with a buffered use. Beyond it uses are not recorded: `last_used_at` is informative only. */
const MAX_BUFFERED_KEYS = 100_000
/** Maximum number of buffered uses besides the latest of each key. Beyond it they are not recorded. */
const MAX_REPLACED_USES = 10_000
const KEYS_PER_WRITE = 500

export type KeyedUse = readonly [keyId: string, use: RecordedUse]

export interface LastUsed {
  /** Buffers a use of the key. @param from the client; a mail about the first use after a pause names its network */
  note(keyId: string, from: UsedFrom): void
  /** The key with the buffered use, if that is later than the stored one. */
  withLastUse(key: ApiKey): ApiKey
  flush(): Promise<void>
}

/** The functions that `flush` calls before it stores uses. */
export interface LastUsedNotices extends Pick<KeyNotices, 'notifyOfReuse'> {
  /** Called with the latest use of each key, and with uses from other networks that a later use replaced. */
  noteNetworks(uses: readonly KeyedUse[]): Promise<void>
}

/**
 * The last use of each key: when, from which network and by which client. Buffered in memory and written in batches, so
 * that a key used a thousand times a second causes no hot row, and an exchange writes nothing.
 */
export function createLastUsed({
  storage,
  clock,
  notices,
}: {
  storage: Storage
  clock: Clock
  notices: LastUsedNotices
}): LastUsed {
  /** The latest use of each key, by key id, until that use is stored. */
  const latestUses = new Map<string, RecordedUse>()
  /** Uses, by key and network, that a later use from another network replaced in `latestUses`. */
  const replacedUses = new Map<string, KeyedUse>()
  let lastFlush: Promise<void> = Promise.resolve()

  return {
    note(keyId, from) {
      const use = latestUses.get(keyId)
      if (use) {
        if (use.from.network !== from.network) keepReplaced(keyId, use)
        use.at = clock.now()
        use.from = from
      } else if (latestUses.size < MAX_BUFFERED_KEYS) latestUses.set(keyId, { at: clock.now(), from })
    },
    withLastUse(key) {
      const use = latestUses.get(key.id)
      return use && use.at > (key.lastUsedAt ?? Number.NEGATIVE_INFINITY)
        ? { ...key, lastUsedAt: use.at, lastUsedFrom: { network: use.from.network, client: use.from.client } }
        : key
    },
    flush() {
      // Serialized, so that two flushes never write the same uses.
      lastFlush = lastFlush.catch(() => {}).then(write)
      return lastFlush
    },
  }

  function keepReplaced(keyId: string, { at, from }: RecordedUse): void {
    if (replacedUses.size < MAX_REPLACED_USES)
      replacedUses.set(`${keyId} ${from.network}`, [keyId, { at, from }])
  }

  async function write(): Promise<void> {
    const replacedEntries = [...replacedUses]
    for (let start = 0; start < replacedEntries.length; start += KEYS_PER_WRITE) {
      const batch = replacedEntries.slice(start, start + KEYS_PER_WRITE)
      await notices.noteNetworks(batch.map(([, use]) => use))
      for (const [name] of batch) replacedUses.delete(name)
    }
    const uses = [...latestUses].map(([id, { at, from }]) => [id, { at, from }] as const)
    for (let start = 0; start < uses.length; start += KEYS_PER_WRITE) {
      const batch = new Map(uses.slice(start, start + KEYS_PER_WRITE))
      await notices.notifyOfReuse(batch)
      await notices.noteNetworks([...batch])
      await storage.store.apiKeys.recordUse(batch)
      // A use is removed only after it is stored, and only if no later use of the key came meanwhile.
      for (const [id, { at }] of batch) if (latestUses.get(id)?.at === at) latestUses.delete(id)
    }
  }
}
