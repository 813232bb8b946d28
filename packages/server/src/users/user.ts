import type { Instant } from '../clock.ts'
import type { EmailAddress } from './email-address.ts'

export type UserStatus = 'active' | 'suspended' | 'deleted'
/** `support` may read everything, `admin` may also change it. */
export type UserRole = 'user' | 'support' | 'admin'
export const USER_ROLES: readonly UserRole[] = ['user', 'support', 'admin']
/** Orders roles by their rights. */
export const ROLE_RANK: Record<UserRole, number> = { user: 0, support: 1, admin: 2 }

/** A person. Only a deleted one has no address. */
export interface User {
  id: string
  email: EmailAddress | null
  name: string | null
  role: UserRole
  status: UserStatus
  createdAt: Instant
  /** When the account will be deleted at the person's request; null if no deletion is scheduled. */
  deletesAt: Instant | null
  /** The language of pages and mails (BCP 47); if null, the browser or the app chooses it with each request. */
  locale: string | null
}

export const MAX_USER_NAME_LENGTH = 100
