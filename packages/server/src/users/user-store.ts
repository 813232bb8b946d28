import type { Instant } from '../clock.ts'
import type { Attribution } from '../endings/fact.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from './email-address.ts'
import type { User, UserRole, UserStatus } from './user.ts'

/** How people are searched: by a condition with an index of its own, and filters. */
export interface UserSearch {
  /** Absent: all, newest first (or oldest, as `oldestFirst` says). The others in the order of what they search. */
  by?: /** Where the engine has trigrams, three characters and more without `@` also within it; these newest first. */
    | { addressBeginning: string }
    /** With the `@`. */
    | { domainBeginning: string }
    | { keyPrefixBeginning: string }
  status?: UserStatus
  role?: UserRole
  oldestFirst?: boolean
}

export interface UserStore {
  find(id: string): Promise<User | null>
  findByEmail(email: EmailAddress): Promise<User | null>
  /** The users with these ids, by one query and in no order; unknown ids are absent. At most some hundreds. */
  findMany(ids: readonly string[]): Promise<User[]>
  /** True once for an imported account. */
  claimOnboarding(id: string): Promise<boolean>
  /** The operator's own id for an imported person. */
  externalIdOf(id: string): Promise<string | null>
  /**
   * Locks the user's row until the transaction ends and returns it. Operations that count before they insert (the key
   * limit) must hold this lock.
   */
  lock(id: string): Promise<User | null>
  list(page: PageRequest): Promise<Slice<User>>
  /**
   * People for administrators, by one index. Where a filter is left to the rows a page reads a bounded number of them, so it
   * may have fewer than `limit`, or none, and still be followed by another. The `at` of a position belongs to the search.
   */
  search(wanted: UserSearch, page: PageRequest): Promise<Slice<User>>
  /**
   * Locks what decides who administers until the transaction ends. Before the locks of addresses and accounts; held by
   * everything that may take the role from an administrator.
   */
  lockAdministrators(): Promise<void>
  /** Whether this is an active administrator and nobody else is one. Exact only under `lockAdministrators`. */
  isOnlyAdministrator(id: string): Promise<boolean>
  /** The number of active administrators, at most `atMost`. */
  countAdministrators(atMost: number): Promise<number>
  /** Accounts whose deletion is due, the longest due first. */
  dueForDeletion(now: Instant, limit: number): Promise<string[]>
  /** Whether anybody is an active administrator. */
  hasAdministrator(): Promise<boolean>
}

/** Administrative: only audited transactions have these. Recorded by endings/facts.ts too. */
export interface AdministrativeUserChanges {
  /** Null if there is no such user, or a deleted one. */
  setRole(id: string, role: UserRole, at: Instant): Promise<User | null>
  /** Null, and nothing written, unless the user is active. */
  suspend(id: string, at: Instant): Promise<User | null>
  /** Null, and nothing written, unless the user is suspended. */
  activate(id: string, at: Instant): Promise<User | null>
}

/** Recorded by endings/facts.ts in the transaction that calls them. */
export interface UserChanges {
  /** False, and nothing written, if the address has an account already. */
  insert(user: User): Promise<boolean>
  /** The same for an account of another system, which awaits its onboarding. */
  insertImported(user: User, externalId: string | null): Promise<boolean>
  /** The user after the change; null for an unknown or deleted one. */
  rename(id: string, name: string | null, at: Instant): Promise<User | null>
  /** The user after the change; null for an unknown or deleted one. */
  setLocale(id: string, locale: string | null, at: Instant): Promise<User | null>
  /** Null, and nothing written, unless the account is active and its deletion was not asked for yet. */
  scheduleDeletion(id: string, deletesAt: Instant, by: Attribution): Promise<User | null>
  /** Null, and nothing written, where no deletion is awaited. */
  cancelDeletion(id: string, by: Attribution): Promise<User | null>
  /** Moves a deletion that is due to `until`. Null where none is. */
  postponeDeletion(id: string, until: Instant, now: Instant): Promise<User | null>
  /** Null, and nothing written, unless the account is active, has the address `from`, and nobody has `to`. */
  changeEmail(id: string, from: EmailAddress, to: EmailAddress, by: Attribution): Promise<User | null>
  /** Sets the status to deleted and erases name and address. Null if that was done before. */
  erase(id: string, at: Instant): Promise<User | null>
}
