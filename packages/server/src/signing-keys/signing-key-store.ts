import type { Instant } from '../clock.ts'
import type { SigningKey } from './signing-key.ts'

export interface SigningKeyStore {
  /** All that are not retired at `now`, oldest `signsFrom` first. */
  list(now: Instant): Promise<SigningKey[]>
  /** False, and nothing written, when a key exists, so that nodes which start at once agree on one. */
  insertFirst(key: SigningKey): Promise<boolean>
  /** Adds a key and sets `retiresAt` of those before it, where it is unset. */
  insertNext(key: SigningKey, othersRetireAt: Instant): Promise<void>
  reseal(id: string, sealedSeed: string): Promise<void>
  prune(retiredBefore: Instant): Promise<number>
}
