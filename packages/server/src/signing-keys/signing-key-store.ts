import type { Instant } from '../clock.ts'
import type { SigningKey } from './signing-key.ts'

export interface SigningKeyStore {
  /** All that are not retired at `now`, of every algorithm, oldest `signsFrom` first within each. */
  list(now: Instant): Promise<SigningKey[]>
  /** False, and nothing written, when a key of its algorithm exists, so that nodes which create one at once agree. */
  insertFirst(key: SigningKey): Promise<boolean>
  /** Adds a key and sets `retiresAt` of those of its algorithm before it, where it is unset. */
  insertNext(key: SigningKey, othersRetireAt: Instant): Promise<void>
  reseal(id: string, sealedPrivateKey: string): Promise<void>
  prune(retiredBefore: Instant): Promise<number>
}
