import type { UserObject } from '@keyway/sdk/protocol'
import { toRfc3339 } from '../clock.ts'
import type { User } from '../users/user.ts'

/** A person as every call shows them. Built name by name, as every answer is: what is not listed never leaves. */
export function userObject(user: User): UserObject {
  return {
    id: user.id,
    email: user.email ?? '',
    name: user.name,
    role: user.role,
    status: user.status,
    created_at: toRfc3339(user.createdAt),
  }
}
