import type { AuditChange, AuditType } from '../audit/audit-event.ts'
import type { User, UserRole, UserStatus } from './user.ts'

/** A change of a person's account, as the audit records it. */
export function accountChange(type: AuditType, userId: string): AuditChange {
  return { type, subject: { type: 'user', id: userId, user_id: userId }, before: null, after: null }
}

export function roleChange(before: User, role: UserRole): AuditChange {
  return { ...accountChange('user.role_changed', before.id), before: { role: before.role }, after: { role } }
}

export function statusChange(
  type: AuditType,
  id: string,
  before: UserStatus,
  after: UserStatus,
): AuditChange {
  return { ...accountChange(type, id), before: { status: before }, after: { status: after } }
}
