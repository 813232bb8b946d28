import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { Storage } from '../store.ts'
import type { KeyNotices, KeyUse } from './key-notices.ts'

/** How often `flushUses` is called: a use is stored within the promised 10 s, also where a commit is slow. */
export const USE_FLUSH_INTERVAL = 5 * SECOND
/** Keys whose use is remembered between two flushes. Beyond it a use goes unnoted: it is a hint, not a record. */
const MAX_NOTED_KEYS = 100_000
const KEYS_PER_WRITE = 500

export interface LastUsed {
  /** @param address of the client, told to the owner should the key have rested */
  note(keyId: string, address: string): void
  /** The key with the use that this node saw, where that is later than what is stored. */
  withLastUse<Key extends { id: string; lastUsedAt: Instant | null }>(key: Key): Key
  flush(): Promise<void>
}

/** Told of uses before they are stored. */
export type LastUsedNotices = Pick<KeyNotices, 'tellOfWaking'>

/**
 * When keys were last used: gathered in memory and written in batches, so that a key used a thousand times a
 * second is no hot row and an exchange writes nothing.
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
  const noted = new Map<string, KeyUse>()
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
      // One after the other, so that two flushes never write the same notes.
      flushing = flushing.catch(() => {}).then(write)
      return flushing
    },
  }

  async function write(): Promise<void> {
    const uses = [...noted].map(([id, { at, address }]) => [id, { at, address }] as const)
    for (let start = 0; start < uses.length; start += KEYS_PER_WRITE) {
      const batch = new Map(uses.slice(start, start + KEYS_PER_WRITE))
      await notices.tellOfWaking(batch)
      await storage.store.apiKeys.recordUse(new Map([...batch].map(([id, { at }]) => [id, at])))
      // Forgotten only now that it is stored, and only where no later use was noted meanwhile.
      for (const [id, { at }] of batch) if (noted.get(id)?.at === at) noted.delete(id)
    }
  }
}
