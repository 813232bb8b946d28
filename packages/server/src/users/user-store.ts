import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from './email-address.ts'
import type { User, UserRole, UserStatus } from './user.ts'

export interface UserStore {
  find(id: string): Promise<User | null>
  findByEmail(email: EmailAddress): Promise<User | null>
  /** False, and nothing written, when the address has an account already. */
  insert(user: User): Promise<boolean>
  /** The user after the change; null for an unknown or deleted one. */
  rename(id: string, name: string | null): Promise<User | null>
  setRole(id: string, role: UserRole): Promise<User | null>
  /** Changes the status from one of `from` to `to`; null when the user's status is none of those. */
  setStatus(id: string, from: UserStatus[], to: UserStatus): Promise<User | null>
  /** Sets the status to deleted and erases name and address. Null when that was done already. */
  erase(id: string, at: Instant): Promise<User | null>
  /**
   * Locks the user's row until the transaction ends and returns it. Checks that count before they grant (the key
   * limit) must hold this lock.
   */
  lock(id: string): Promise<User | null>
  list(page: PageRequest): Promise<Slice<User>>
}
