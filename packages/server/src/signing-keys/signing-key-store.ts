import type { Instant } from '../clock.ts'
import type { SigningKey } from './signing-key.ts'

export interface SigningKeyStore {
  /** All keys that are not retired at `now`, of every algorithm, oldest `signsFrom` first within each. */
  list(now: Instant): Promise<SigningKey[]>
  /**
   * Inserts the first key of an algorithm. Returns false and writes nothing if a key of it exists, so that nodes that
   * create one concurrently use the same.
   */
  insertFirst(key: SigningKey): Promise<boolean>
  /** Adds a key, and sets `retiresAt` of the older keys of its algorithm where it is unset. */
  insertNext(key: SigningKey, othersRetireAt: Instant): Promise<void>
  /** Removes keys that retired before this instant. Returns how many. */
  prune(retiredBefore: Instant): Promise<number>
}
