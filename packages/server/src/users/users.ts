import type { User, UserRole } from './user.ts'

export interface Users {
  get(id: string): Promise<User | null>
  /** By id or address. @throws KeywayError `not_found` */
  find(who: string): Promise<User>
  /** @throws KeywayError `not_found` */
  rename(id: string, name: string | null): Promise<User>
  setRole(id: string, role: UserRole): Promise<User>
  /** Sessions and links end, keys answer `account_suspended`, connections close. Repeating it changes nothing. */
  suspend(id: string): Promise<User>
  /** Gives the keys back, not the sessions. */
  activate(id: string): Promise<User>
  /** Sessions and keys end, name and address are erased, the ledger stays. Permanent. */
  delete(id: string): Promise<User>
}
