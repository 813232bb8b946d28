import type { Instant } from '../clock.ts'
import type { Attribution } from '../endings/fact.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from './email-address.ts'
import type { User, UserRole, UserStatus } from './user.ts'

/** A search for people: one condition, which has an index of its own, and filters. */
export interface UserSearch {
  /**
   * The text to search for. Results are sorted by the values that it is compared with. If absent, the search lists
   * everybody, newest first, or oldest first with `oldestFirst`.
   */
  by?: /**
   * The beginning of an address, or, if no address begins with it, of a domain. On engines with a trigram index a text of
   * three or more characters matches any part of an address, and results are then sorted newest first. A text with an
   * `@` does so only if it is no whole address and no address begins with it.
   */
    | { addressBeginning: string }
    /** The beginning of a domain, with its `@`. */
    | { domainBeginning: string }
    /** The beginning of a key. A person with several such keys appears once on a page. */
    | { keyPrefixBeginning: string }
  status?: UserStatus
  role?: UserRole
  oldestFirst?: boolean
}

export interface UserStore {
  find(id: string): Promise<User | null>
  findByEmail(email: EmailAddress): Promise<User | null>
  /** The users with these ids, at most some hundreds, by one query and in no order; unknown ids are absent. */
  findMany(ids: readonly string[]): Promise<User[]>
  /** Claims the onboarding of an imported account at its first sign-in (onboarding.ts): true for one caller only. */
  claimOnboarding(id: string): Promise<boolean>
  /** The operator's own id for an imported person; null if there is none. */
  externalIdOf(id: string): Promise<string | null>
  /**
   * Locks the user's row until the transaction ends and returns it. Operations that count before they insert (the key
   * limit) must hold this lock.
   */
  lock(id: string): Promise<User | null>
  list(page: PageRequest): Promise<Slice<User>>
  /**
   * Searches people, for administrators. A search uses one index; filters without an index apply to the rows that it
   * reads. A page reads a bounded number of rows, so it may have fewer than `limit`, or none, and still be followed by
   * another. The meaning of `Position.at` depends on the search.
   */
  search(wanted: UserSearch, page: PageRequest): Promise<Slice<User>>
  /**
   * Locks the set of administrators until the transaction ends. Must be taken before the locks of addresses and
   * accounts, by everything that may remove an administrator.
   */
  lockAdministrators(): Promise<void>
  /** Whether this is an active administrator and nobody else is one. Exact only under `lockAdministrators`. */
  isOnlyAdministrator(id: string): Promise<boolean>
  /** The number of active administrators, at most `atMost`. */
  countAdministrators(atMost: number): Promise<number>
  /** The ids of accounts whose deletion is due, the longest overdue first. */
  dueForDeletion(now: Instant, limit: number): Promise<string[]>
  /** Whether anybody is an active administrator. */
  hasAdministrator(): Promise<boolean>
}

/** Changes by administrators, which only audited transactions have. endings/facts.ts defines what they record. */
export interface AdministrativeUserChanges {
  /** Null if the user does not exist or is deleted. */
  setRole(id: string, role: UserRole, at: Instant): Promise<User | null>
  /** Returns null and writes nothing unless the user is active. */
  suspend(id: string, at: Instant): Promise<User | null>
  /** Returns null and writes nothing unless the user is suspended. */
  activate(id: string, at: Instant): Promise<User | null>
}

/**
 * Changes of accounts. Each is announced to webhooks in the same transaction. An end of an account or a change of its
 * address or deletion date is also published to other nodes and recorded in the journal, and, unless a deletion is only
 * postponed, as a security event that the person sees (endings/facts.ts).
 */
export interface UserChanges {
  /** Returns false and writes nothing if the address has an account already. */
  insert(user: User): Promise<boolean>
  /** Like `insert`, for an account that is imported from another system and onboarded by its first sign-in. */
  insertImported(user: User, externalId: string | null): Promise<boolean>
  /** The user after the change; null for an unknown or deleted one. */
  rename(id: string, name: string | null, at: Instant): Promise<User | null>
  /** The user after the change; null for an unknown or deleted one. */
  setLocale(id: string, locale: string | null, at: Instant): Promise<User | null>
  /** Returns null and writes nothing unless the account is active and no deletion is scheduled. */
  scheduleDeletion(id: string, deletesAt: Instant, by: Attribution): Promise<User | null>
  /** Returns null and writes nothing if no deletion is scheduled. */
  cancelDeletion(id: string, by: Attribution): Promise<User | null>
  /** Postpones a due deletion until `until`. Returns null if no deletion is due. */
  postponeDeletion(id: string, until: Instant, now: Instant): Promise<User | null>
  /** Returns null and writes nothing unless the account is active, has the address `from`, and no account has `to`. */
  changeEmail(id: string, from: EmailAddress, to: EmailAddress, by: Attribution): Promise<User | null>
  /** Sets the status to deleted, and erases all personal data of the row. Null for an unknown or deleted account. */
  erase(id: string, at: Instant): Promise<User | null>
}
