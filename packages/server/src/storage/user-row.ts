import type { User } from '../users/user.ts'
import type { UserRow } from './schema.ts'

export function toUser(
  row:
    | Pick<UserRow, 'id' | 'email' | 'name' | 'role' | 'status' | 'created_at' | 'deletes_at' | 'locale'>
    | undefined,
): User | null {
  if (!row) return null
  const { id, email, name, role, status, created_at, deletes_at, locale } = row
  return { id, email, name, role, status, createdAt: created_at, deletesAt: deletes_at, locale }
}
