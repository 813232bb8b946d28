import type { ApiKey } from '../api-keys/api-key.ts'
import { statusOf } from '../api-keys/api-key.ts'
import { type Instant, toRfc3339, toRfc3339OrNull } from '../clock.ts'
import { userObject } from '../http/user-object.ts'
import type { OutboxMessage } from '../outbox/message.ts'
import type { Session } from '../sessions/session.ts'
import type { User } from '../users/user.ts'

/** A user as in the HTTP API, but with `email` null for a deleted account. */
export function userJson(user: User) {
  return { ...userObject(user), email: user.email, deletes_at: toRfc3339OrNull(user.deletesAt) }
}

export function keyJson(key: ApiKey, now: Instant) {
  return {
    id: key.id,
    user_id: key.userId,
    key_prefix: key.keyPrefix,
    name: key.name,
    status: statusOf(key, now),
    last_used_at: toRfc3339OrNull(key.lastUsedAt),
    last_used_from: key.lastUsedFrom,
    expires_at: toRfc3339OrNull(key.expiresAt),
    revoked_at: toRfc3339OrNull(key.revokedAt),
  }
}

export function sessionJson(session: Session) {
  return {
    id: session.id,
    last_used_at: toRfc3339(session.lastUsedAt),
    network: session.network,
    client: session.client,
  }
}

/** The state of a mail, without its content. */
export function mailJson(mail: OutboxMessage) {
  return {
    id: mail.id,
    kind: mail.kind,
    state: mail.state,
    attempts: mail.attempts,
    created_at: toRfc3339(mail.createdAt),
    last_error: mail.lastError,
  }
}
