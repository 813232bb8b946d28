import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import { type AuditChange, type AuditType, BY_SETTING } from '../audit/audit-event.ts'
import type { ChangeLimits } from '../change-limits.ts'
import type { Clock, Instant } from '../clock.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Storage, Transaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { ROLE_RANK, type User } from '../users/user.ts'
import { roleChange } from '../users/user-changes.ts'
import { INVITATION_LIFETIME, type Invitation, type InvitedRole } from './invitation.ts'

export interface Invitations {
  /**
   * Invites an address by mail, for seven days, and revokes its earlier invitation if that was not accepted. The mail
   * is in the language of `locale` (BCP 47), otherwise in the inviter’s.
   * @throws KeywayError `invalid_request` (the address has an account), `rate_limited`
   */
  invite(
    wanted: { email: EmailAddress; role: InvitedRole | null; locale?: string | null },
    by: ActedBy,
  ): Promise<Invitation>
  /** Revokes an invitation. Permanent and idempotent; an accepted one is unchanged. @throws KeywayError `not_found` */
  revoke(id: string, by: ActedBy): Promise<Invitation>
  /** Accepts the pending invitation of an address that signs in, in that transaction. Null if there is none. */
  accept(tx: Transaction, email: EmailAddress, userId: string, now: Instant): Promise<Invitation | null>
  /**
   * Gives the role of an accepted invitation, unless the user's role has as many rights or the inviter is no longer an
   * administrator. Returns the user with the resulting role. Must come last in the transaction: it locks the head of
   * the audit chain.
   */
  giveRole(tx: Transaction, accepted: Invitation, user: User): Promise<User>
}

export function createInvitations({
  storage,
  clock,
  audit,
  outbox,
  changeLimits,
  publicUrl,
}: {
  storage: Storage
  clock: Clock
  audit: Audit
  outbox: Outbox
  changeLimits: ChangeLimits
  publicUrl: string
}): Invitations {
  return {
    async invite({ email, role, locale }, by) {
      changeLimits.count(`invitation:${by.actor.id}`)
      const now = clock.now()
      const invitation: Invitation = {
        id: newId(now),
        email,
        role,
        invitedBy: by.actor.id,
        createdAt: now,
        expiresAt: now + INVITATION_LIFETIME,
        acceptedAt: null,
        userId: null,
        revokedAt: null,
      }
      const mailId = newId(now)
      const isInvited = await audit.perform(
        by,
        async tx => {
          // Of two administrators who invite the same address at once, one waits for the other.
          await tx.magicLinks.lockAddress(email)
          if (await tx.users.findByEmail(email)) return withoutChanges(false)
          const revokedIds = await tx.invitations.insert(invitation)
          await outbox.enqueue(tx, {
            id: mailId,
            recipient: email,
            userId: null,
            content: { kind: 'invitation', link: linkOf(publicUrl, email), expiresAt: invitation.expiresAt },
            locale: locale ?? (await localeOf(tx, by)),
            now,
            sendBefore: invitation.expiresAt,
          })
          const revocations = revokedIds.map(id => invitationChange('invitation.revoked', id))
          return auditedOutcome(true, ...revocations, {
            ...invitationChange('invitation.created', invitation.id),
            after: { role },
          })
        },
        async store => (await store.invitations.find(invitation.id)) !== null || undefined,
      )
      if (isInvited) return invitation
      throw invalidRequest([
        { field: 'email', message: 'has an account already; give that one a role instead' },
      ])
    },

    async revoke(id, by) {
      await audit.perform(by, async tx =>
        (await tx.invitations.revoke(id, clock.now()))
          ? auditedOutcome(true, invitationChange('invitation.revoked', id))
          : withoutChanges(false),
      )
      const invitation = await storage.store.invitations.find(id)
      if (!invitation) throw new KeywayError('not_found', 'There is no such invitation.')
      return invitation
    },

    accept: (tx, email, userId, now) => tx.invitations.accept(email, userId, now),

    async giveRole(tx, accepted, user) {
      const role = accepted.role
      if (role === null || ROLE_RANK[user.role] >= ROLE_RANK[role]) return user
      if (!(await isInviterAdministrator(tx, accepted))) return user
      const by: ActedBy = { actor: BY_SETTING, caller: null, requestId: null, reason: null }
      return audit.performWithin(tx, by, async audited => {
        const updatedUser = await audited.users.setRole(user.id, role, clock.now())
        const auditChange = { ...roleChange(user, role), after: { role, invitation_id: accepted.id } }
        return auditedOutcome(updatedUser ?? user, auditChange)
      })
    },
  }

  async function localeOf(tx: Transaction, { actor }: ActedBy): Promise<string | null> {
    return actor.id === null ? null : ((await tx.users.find(actor.id))?.locale ?? null)
  }

  /**
   * Whether the inviter is still an administrator, or is the `keyway` command. Otherwise the invitation gives no role.
   */
  async function isInviterAdministrator(tx: Transaction, { invitedBy }: Invitation): Promise<boolean> {
    if (invitedBy === null) return true
    const inviter = await tx.users.find(invitedBy)
    return inviter?.role === 'admin' && inviter.status === 'active'
  }
}

function invitationChange(type: AuditType, id: string): AuditChange {
  return { type, subject: { type: 'invitation', id, user_id: null }, before: null, after: null }
}

function linkOf(publicUrl: string, email: EmailAddress): string {
  return `${publicUrl}/sign-in?email=${encodeURIComponent(email)}`
}
