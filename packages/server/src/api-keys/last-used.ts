import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { Storage } from '../store.ts'
import type { KeyNotices, RecordedUse } from './key-notices.ts'

/** Interval of `flushUses`: a use is stored within the promised 10 s even if a commit is slow. */
export const USE_FLUSH_INTERVAL = 5 * SECOND
/** Keys with a buffered use. Beyond it uses are not recorded: `last_used_at` is informative only. */
const MAX_NOTED_KEYS = 100_000
const KEYS_PER_WRITE = 500

export interface LastUsed {
  /** @param address of the client; the owner's mail names its network if the key was dormant */
  note(keyId: string, address: string): void
  /** The key with the buffered use, if that is later than the stored one. */
  withLastUse<Key extends { id: string; lastUsedAt: Instant | null }>(key: Key): Key
  flush(): Promise<void>
}

/** Called before uses are stored. */
export type LastUsedNotices = Pick<KeyNotices, 'notifyOfReuse'>

/**
 * When keys were last used: buffered in memory and written in batches, so that a key used a thousand times a second
 * causes no hot row, and an exchange writes nothing.
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
  const noted = new Map<string, RecordedUse>()
  let flushing: Promise<void> = Promise.resolve()

  return {
    note(keyId, address) {
      const use = noted.get(keyId)
      if (use) use.at = clock.now()
      else if (noted.size < MAX_NOTED_KEYS) noted.set(keyId, { at: clock.now(), address })
    },
    withLastUse(key) {
      const at = noted.get(key.id)?.at
      return at !== undefined && at > (key.lastUsedAt ?? Number.NEGATIVE_INFINITY)
        ? { ...key, lastUsedAt: at }
        : key
    },
    flush() {
      // Serialized, so that two flushes never write the same uses.
      flushing = flushing.catch(() => {}).then(write)
      return flushing
    },
  }

  async function write(): Promise<void> {
    const uses = [...noted].map(([id, { at, address }]) => [id, { at, address }] as const)
    for (let start = 0; start < uses.length; start += KEYS_PER_WRITE) {
      const batch = new Map(uses.slice(start, start + KEYS_PER_WRITE))
      await notices.notifyOfReuse(batch)
      await storage.store.apiKeys.recordUse(new Map([...batch].map(([id, { at }]) => [id, at])))
      // Removed only after it is stored, and only if no later use was recorded meanwhile.
      for (const [id, { at }] of batch) if (noted.get(id)?.at === at) noted.delete(id)
    }
  }
}
