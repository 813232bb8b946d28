import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from './email-address.ts'
import type { User, UserRole, UserStatus } from './user.ts'

export interface UserStore {
  find(id: string): Promise<User | null>
  findByEmail(email: EmailAddress): Promise<User | null>
  /** False, and nothing written, when the address has an account already. */
  insert(user: User): Promise<boolean>
  /** The user as it is now, or null when there is none that is not deleted. */
  rename(id: string, name: string | null): Promise<User | null>
  setRole(id: string, role: UserRole): Promise<User | null>
  /** Moves from one of `from` to `to`; null when the user is not in one of those. */
  setStatus(id: string, from: UserStatus[], to: UserStatus): Promise<User | null>
  /** Status deleted, name and address gone. Null when that was so already. */
  erase(id: string, at: Instant): Promise<User | null>
  /**
   * Locks the user's row until the transaction ends and returns it: whatever counts before it grants (the key
   * limit) does so behind this lock.
   */
  lock(id: string): Promise<User | null>
  list(page: PageRequest): Promise<Slice<User>>
}
