import type { UserObject } from '@keyway/sdk/protocol'
import { toRfc3339 } from '../clock.ts'
import type { User } from '../users/user.ts'

/** The JSON form of a user. Fields are listed explicitly, so that new columns are not exposed by accident. */
export function userObject(user: User): UserObject {
  return {
    id: user.id,
    email: user.email ?? '',
    name: user.name,
    role: user.role,
    status: user.status,
    created_at: toRfc3339(user.createdAt),
    locale: user.locale,
  }
}
