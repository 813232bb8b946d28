import type { Instant } from '../clock.ts'

/** An address of `KEYWAY_ADMIN_EMAILS`, as a keyed hash. */
export interface ListedAdministrator {
  addressHash: string
  listedAt: Instant
  /**
   * When the account with this address became administrator because it is listed, or its role was set in another way.
   * Null if neither has happened since the address was listed.
   */
  claimedAt: Instant | null
  userId: string | null
}

export interface AdministratorStore {
  /** All listed addresses, oldest first; not in pages, since they come from one setting (`KEYWAY_ADMIN_EMAILS`). */
  list(): Promise<ListedAdministrator[]>
  /** Adds an address, unless it is listed. */
  add(addressHash: string, at: Instant): Promise<void>
  remove(addressHash: string): Promise<void>
  /**
   * Sets `claimedAt`: after that the listing never gives the administrator role again, even if the account loses it.
   * True only the first time since the address was listed; false for an address that is not listed.
   */
  claim(addressHash: string, userId: string, at: Instant): Promise<boolean>
}
