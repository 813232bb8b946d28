import type { Instant } from '../clock.ts'

/** An address of `KEYWAY_ADMIN_EMAILS`, as a keyed hash. */
export interface ListedAdministrator {
  addressHash: string
  listedAt: Instant
  /** When an account became administrator by it, or got its role otherwise; null: not since it was listed. */
  claimedAt: Instant | null
  userId: string | null
}

export interface AdministratorStore {
  /** The listed addresses, oldest first; as many as one setting holds. */
  list(): Promise<ListedAdministrator[]>
  /** Adds an address, unless it is listed. */
  add(addressHash: string, at: Instant): Promise<void>
  remove(addressHash: string): Promise<void>
  /** True the first time since it was listed; false for an address that is not. */
  claim(addressHash: string, userId: string, at: Instant): Promise<boolean>
}
