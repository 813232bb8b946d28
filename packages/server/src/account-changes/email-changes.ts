import type { Clock, Instant } from '../clock.ts'
import { invalidRequest, type KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import {
  bucketsOf,
  namesOf,
  type Refusal,
  type SendLimits,
  sendWithinLimits,
} from '../magic-links/send-limits.ts'
import type { Caller } from '../network.ts'
import { MIN_VALIDITY_LEFT } from '../outbox/delivery.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { PolicyRegistry } from '../policies/policies.ts'
import { admitsSignUp } from '../policies/policy.ts'
import { randomToken, type Secrets, sha256 } from '../secrets.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Session } from '../sessions/session.ts'
import type { Storage, Transaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { createTrialCredit, type PreparedCredit } from '../users/trial-credit.ts'
import type { User } from '../users/user.ts'
import { forgetAddress } from '../users/users.ts'
import {
  type ChangeSide,
  EMAIL_CHANGE_LIFETIME,
  EMAIL_CHANGE_TOKEN_BYTES,
  type EmailChange,
  isPending,
} from './email-change.ts'
import { accountBucket, throwRateLimited } from './mail-limits.ts'

/** The result of a confirmation. `awaits`: the address of this `side` has not confirmed yet. */
export type Confirmation = { is: 'changed'; user: User } | { is: 'awaits'; side: ChangeSide }

export interface EmailChanges {
  /**
   * Mails a link to the new address and one to the current address, and ends an earlier request. The answer and the
   * work are the same whether or not the new address has an account, so that neither reveals it; the mail to a
   * new address that has an account has no link.
   *
   * @throws KeywayError `invalid_request`, `rate_limited`
   */
  request(
    signedIn: { user: User; session: Pick<Session, 'id'> },
    email: EmailAddress,
    caller: Caller,
  ): Promise<EmailChange>
  /** The change that awaits confirmation; null if there is none or it has expired. */
  pending(userId: string): Promise<EmailChange | null>
  /** The side that the token was mailed to, and the pending change; null unless the token is valid for this account. */
  inspect(userId: string, token: string): Promise<{ side: ChangeSide; change: EmailChange } | null>
  /**
   * Confirms by one of the two links, in any session of the account. The second confirmation changes the address and
   * ends all sessions but the one that requested the change; keys stay valid. The link alone,
   * without a session of the account, confirms nothing: otherwise a stranger could request a change of their account to
   * somebody's address, and this person's careless click would confirm it.
   *
   * @throws KeywayError `invalid_request` if the link is not, or no longer, valid for this account, or if the new
   *   address has an account meanwhile
   */
  confirm(userId: string, token: string, caller: Caller): Promise<Confirmation>
  /** Withdraws the pending change. Idempotent. */
  cancel(userId: string): Promise<void>
}

export interface EmailChangeDeps extends SendLimits {
  storage: Storage
  clock: Clock
  secrets: Secrets
  outbox: Outbox
  policies: Pick<PolicyRegistry, 'read'>
  publicUrl: string
}

type Outcome = Confirmation | { is: 'invalid' } | { is: 'taken' }

export function createEmailChanges(deps: EmailChangeDeps): EmailChanges {
  const { storage, clock, secrets, outbox, policies, publicUrl } = deps
  const { store } = storage
  const trialCredit = createTrialCredit({ storage, secrets })

  return {
    async request({ user, session }, email, caller) {
      const oldEmail = user.email!
      if (email === oldEmail) throw invalidAddress('is your address already')
      await assertMayChangeTo(email)
      const buckets = [...bucketsOf({ email }, caller, deps), accountBucket(user.id)]
      const tokens = {
        old: randomToken(EMAIL_CHANGE_TOKEN_BYTES),
        new: randomToken(EMAIL_CHANGE_TOKEN_BYTES),
      }
      const createdAt = clock.now()
      const change: EmailChange = {
        userId: user.id,
        sessionId: session.id,
        oldEmail,
        newEmail: email,
        oldTokenHash: sha256(tokens.old),
        newTokenHash: sha256(tokens.new),
        oldConfirmedAt: null,
        newConfirmedAt: null,
        createdAt,
        expiresAt: createdAt + EMAIL_CHANGE_LIFETIME,
      }
      const mailIds = { old: newId(createdAt), new: newId(createdAt) }
      const refusal = await storage.runExclusive(namesOf(buckets), () =>
        storage.transaction<Refusal | null>(
          tx =>
            sendWithinLimits(tx.magicLinks, buckets, clock.now(), () =>
              storeAndMail(tx, change, tokens, mailIds, caller),
            ),
          async from =>
            (await from.emailChanges.find(user.id))?.newTokenHash === change.newTokenHash ? null : undefined,
        ),
      )
      if (refusal) throwRateLimited(refusal.retryAfter, refusal.window)
      return change
    },

    async pending(userId) {
      const change = await store.emailChanges.find(userId)
      return change && isPending(change, clock.now()) ? change : null
    },

    inspect,

    async confirm(userId, token, caller) {
      const found = await inspect(userId, token)
      if (!found) throw invalidToken()
      const { change } = found
      const credit = await trialCredit.prepare(change.newEmail, clock.now())
      const mailId = newId(clock.now())
      const outcome = await storage.transaction<Outcome>(
        tx => confirmWithin(tx, found, { tokenHash: sha256(token), credit, mailId, caller }),
        async from => {
          const user = await from.users.find(userId)
          return user?.email === change.newEmail ? { is: 'changed', user } : undefined
        },
      )
      if (outcome.is === 'invalid') throw invalidToken()
      if (outcome.is === 'taken')
        throw invalidToken('belongs to a change to an address that has an account now')
      return outcome
    },

    async cancel(userId) {
      await store.emailChanges.remove(userId)
    },
  }

  /**
   * If only listed domains may sign up, refuses an address of another domain: otherwise an account could leave the
   * listed domains.
   *
   * @throws KeywayError `invalid_request`
   */
  async function assertMayChangeTo(email: EmailAddress): Promise<void> {
    const current = await policies.read(store)
    if (current.signUp === 'domains' && !admitsSignUp(current, email))
      throw invalidAddress('must be of a domain that may sign up here (policy sign_up_domains)')
  }

  async function storeAndMail(
    tx: Transaction,
    change: EmailChange,
    tokens: Record<ChangeSide, string>,
    mailIds: Record<ChangeSide, string>,
    caller: Caller,
  ): Promise<void> {
    const { userId, expiresAt, newEmail, oldEmail } = change
    const now = change.createdAt
    const sendBefore = expiresAt - MIN_VALIDITY_LEFT
    const linkOf = (side: ChangeSide) => `${publicUrl}/account/email?token=${tokens[side]}`
    const { network } = caller
    await tx.emailChanges.put(change)
    await tx.securityEvents.insert(securityEvent('email_change_requested', userId, now, caller))
    await outbox.enqueue(tx, {
      id: mailIds.old,
      recipient: oldEmail,
      userId,
      content: { kind: 'email_change_old', link: linkOf('old'), newEmail, expiresAt, network },
      now,
      sendBefore,
    })
    await outbox.enqueue(tx, {
      id: mailIds.new,
      recipient: newEmail,
      userId,
      content: { kind: 'email_change_new', link: linkOf('new'), expiresAt },
      now,
      sendBefore,
    })
  }

  async function inspect(userId: string, token: string) {
    const change = await store.emailChanges.find(userId)
    if (!change || !isPending(change, clock.now())) return null
    const hash = sha256(token)
    if (hash === change.oldTokenHash) return { side: 'old' as const, change }
    return hash === change.newTokenHash ? { side: 'new' as const, change } : null
  }

  /**
   * Locks the addresses before the account, in the same order as all other code. Concurrent sign-ins by either address
   * wait, then find their links used.
   */
  async function confirmWithin(
    tx: Transaction,
    { side, change: { userId, oldEmail, newEmail } }: { side: ChangeSide; change: EmailChange },
    {
      tokenHash,
      credit,
      mailId,
      caller,
    }: {
      tokenHash: string
      credit: PreparedCredit
      mailId: string
      caller: Caller
    },
  ): Promise<Outcome> {
    for (const email of [oldEmail, newEmail].sort()) await tx.magicLinks.lockAddress(email)
    await tx.users.lock(userId)
    const now = clock.now()
    const change = await tx.emailChanges.confirm(userId, side, tokenHash, now)
    if (!change) return { is: 'invalid' }
    if (change.oldConfirmedAt === null) return { is: 'awaits', side: 'old' }
    if (change.newConfirmedAt === null) return { is: 'awaits', side: 'new' }
    await tx.emailChanges.remove(userId)
    const user = await tx.users.changeEmail(userId, oldEmail, newEmail, { at: now, caller })
    if (!user) return { is: (await tx.users.findByEmail(newEmail)) ? 'taken' : 'invalid' }
    await tx.sessions.endAllOf(userId, 'revoked', change.sessionId, { at: now, caller })
    await forgetOldAddress(tx, change, now)
    // Records the new address as credited: otherwise it could sign up again, with another trial credit, once this
    // account has changed to yet another address.
    await tx.billing.claimTrialCredit(credit.addressHash, userId, now)
    const content = { kind: 'email_changed', newEmail, at: now, network: caller.network } as const
    await outbox.enqueue(tx, { id: mailId, recipient: oldEmail, userId, content, now })
    return { is: 'changed', user }
  }

  /**
   * Consumes the sign-in links of both addresses, since one to the old address would create a new account now, and one
   * to the new address would sign in to this account. Erases the old address (see `forgetAddress`).
   */
  async function forgetOldAddress(
    tx: Transaction,
    { oldEmail, newEmail }: EmailChange,
    now: Instant,
  ): Promise<void> {
    await tx.magicLinks.consumeAllOf(oldEmail, now)
    await tx.magicLinks.consumeAllOf(newEmail, now)
    await forgetAddress(tx, oldEmail, secrets)
  }
}

function invalidAddress(message: string): KeywayError {
  return invalidRequest([{ field: 'email', message }])
}

function invalidToken(
  message = 'is not of a change of your address that awaits confirmation; ask for the change again',
): KeywayError {
  return invalidRequest([{ field: 'token', message }])
}
