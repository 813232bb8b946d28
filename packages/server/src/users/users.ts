import {
  type ActedBy,
  type Audit,
  type AuditedOutcome,
  auditedOutcome,
  withoutChanges,
} from '../audit/audit.ts'
import type { AuditChange } from '../audit/audit-event.ts'
import type { Clock, Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import type { Secrets } from '../secrets.ts'
import type { AuditedTransaction, Storage, Transaction } from '../store.ts'
import { type EmailAddress, parseEmailAddress } from './email-address.ts'
import { erasedAddressHash } from './erased-address.ts'
import { createUserImport, type ImportedUser, type UserToImport } from './import.ts'
import type { ListedAdministrators } from './listed-administrators.ts'
import type { User, UserRole } from './user.ts'
import { accountChange, roleChange, statusChange } from './user-changes.ts'

export interface Users {
  /** The user with this id, even if deleted; null for an unknown id. */
  get(id: string): Promise<User | null>
  /** @param who an id, also that of a deleted user, or an address. @throws KeywayError `not_found` */
  find(who: string): Promise<User>
  /** Imports accounts; addresses that have one already are skipped. */
  importUsers(people: readonly UserToImport[], by: ActedBy): Promise<ImportedUser[]>
  /** @throws KeywayError `not_found` */
  rename(id: string, name: string | null): Promise<User>
  /**
   * Sets the language of the person's pages and mails. With null, the browser or the app chooses it with each request.
   *
   * @throws KeywayError `not_found`
   */
  setLocale(id: string, locale: string | null): Promise<User>
  /** Renames as an administrator, which is audited. @throws KeywayError `not_found` */
  renameBy(id: string, name: string | null, by: ActedBy): Promise<User>
  /**
   * Changes several fields as one act, all or none.
   * @throws KeywayError `not_found`, `last_administrator`
   */
  change(id: string, change: UserChange, by: ActedBy): Promise<User>
  /** @throws KeywayError `not_found`, `last_administrator` */
  setRole(id: string, role: UserRole, by: ActedBy): Promise<User>
  /**
   * Ends sessions and sign-in links, refuses keys with `account_suspended`, closes connections. Idempotent.
   *
   * @throws KeywayError `not_found`, `last_administrator`
   */
  suspend(id: string, by: ActedBy): Promise<User>
  /** Makes the keys usable again; sessions stay ended. @throws KeywayError `not_found` */
  activate(id: string, by: ActedBy): Promise<User>
  /**
   * Ends sessions and keys; erases name and address everywhere, mail included; keeps the ledger. Permanent.
   *
   * @throws KeywayError `not_found`, `last_administrator`
   */
  delete(id: string, by: ActedBy): Promise<User>
}

/** The fields that an administrator may change. Setting `status` acts like `suspend` and `activate`. */
export interface UserChange {
  name?: string | null
  role?: UserRole
  status?: 'active' | 'suspended'
}

export interface UserDeps {
  storage: Storage
  clock: Clock
  secrets: Secrets
  audit: Audit
  listed: Pick<ListedAdministrators, 'hashOf'>
}

type Outcome = { user: User | null } | { refused: 'last_administrator' }

export function createUsers({ storage, clock, secrets, audit, listed }: UserDeps): Users {
  const { store } = storage

  return {
    get(id) {
      return store.users.find(id)
    },

    async find(who) {
      const id = parseId(who)
      const email = parseEmailAddress(who)
      const user = id ? await store.users.find(id) : email ? await store.users.findByEmail(email) : null
      return requireUser(user)
    },

    importUsers: createUserImport({ clock, audit }),

    async rename(id, name) {
      return requireUser(await storage.transaction(tx => tx.users.rename(id, name, clock.now())))
    },

    async setLocale(id, locale) {
      return requireUser(await storage.transaction(tx => tx.users.setLocale(id, locale, clock.now())))
    },

    async renameBy(id, name, by) {
      const renamedUser = await audit.perform(by, async tx => {
        const userBefore = await tx.users.lock(id)
        const user = await tx.users.rename(id, name, clock.now())
        if (!user || userBefore?.name === user.name) return withoutChanges(user)
        return auditedOutcome(user, { ...accountChange('user.updated', id), after: { name: 'changed' } })
      })
      return requireUser(renamedUser)
    },

    change,
    setRole: (id, role, by) => change(id, { role }, by),

    async suspend(id, by) {
      const outcome = await audit.perform<Outcome>(
        by,
        async tx => {
          await tx.users.lockAdministrators()
          if (await tx.users.isOnlyAdministrator(id)) return REFUSED_FOR_LAST_ADMINISTRATOR
          const user = await suspendWithin(tx, id, clock.now())
          if (!user) return withoutChanges({ user: await tx.users.find(id) })
          return auditedOutcome({ user }, statusChange('user.suspended', id, 'active', 'suspended'))
        },
        readBackByStatus('suspended', id),
      )
      return requireUndeleted(outcome)
    },

    async activate(id, by) {
      const outcome = await audit.perform<Outcome>(
        by,
        async tx => {
          const user = await tx.users.activate(id, clock.now())
          if (!user) return withoutChanges({ user: await tx.users.find(id) })
          return auditedOutcome({ user }, statusChange('user.activated', id, 'suspended', 'active'))
        },
        readBackByStatus('active', id),
      )
      return requireUndeleted(outcome)
    },

    async delete(id, by) {
      const outcome = await audit.perform<Outcome>(
        by,
        async tx => {
          await tx.users.lockAdministrators()
          if (await tx.users.isOnlyAdministrator(id)) return REFUSED_FOR_LAST_ADMINISTRATOR
          const userBefore = await tx.users.find(id)
          const user = await deleteWithin(tx, id, clock.now(), secrets)
          if (!userBefore || !user || userBefore.status === 'deleted') return withoutChanges({ user })
          return auditedOutcome({ user }, statusChange('user.deleted', id, userBefore.status, 'deleted'))
        },
        readBackByStatus('deleted', id),
      )
      return requireUser(userOf(outcome))
    },
  }

  async function change(id: string, { name, role, status }: UserChange, by: ActedBy): Promise<User> {
    const addressHash = role === undefined ? null : await addressHashOf(id)
    const outcome = await audit.perform<Outcome>(by, async tx => {
      await tx.users.lockAdministrators()
      const userBefore = await tx.users.lock(id)
      if (!userBefore || userBefore.status === 'deleted') return withoutChanges({ user: null })
      const removesRights = status === 'suspended' || (role !== undefined && role !== 'admin')
      if (removesRights && (await tx.users.isOnlyAdministrator(id))) return REFUSED_FOR_LAST_ADMINISTRATOR
      const now = clock.now()
      const changes: AuditChange[] = []
      if (addressHash) await tx.administrators.claim(addressHash, id, now)
      if (role !== undefined && role !== userBefore.role && (await tx.users.setRole(id, role, now)))
        changes.push(roleChange(userBefore, role))
      if (status === 'suspended' && (await suspendWithin(tx, id, now)))
        changes.push(statusChange('user.suspended', id, 'active', 'suspended'))
      if (status === 'active' && (await tx.users.activate(id, now)))
        changes.push(statusChange('user.activated', id, 'suspended', 'active'))
      if (name !== undefined && name !== userBefore.name && (await tx.users.rename(id, name, now)))
        changes.push({ ...accountChange('user.updated', id), after: { name: 'changed' } })
      return { outcome: { user: await tx.users.find(id) }, changes }
    })
    return requireUndeleted(outcome)
  }

  /**
   * The hash under which the user's address may be listed in `KEYWAY_ADMIN_EMAILS`. A listed address makes its user an
   * administrator once. Setting a role counts as that once: otherwise the next sign-in would restore a removed role.
   */
  async function addressHashOf(id: string): Promise<string | null> {
    const email = (await store.users.find(id))?.email
    return email ? listed.hashOf(email) : null
  }

  /**
   * Reads the outcome back if the answer to COMMIT was lost. The operation is idempotent, so the expected status means
   * success.
   */
  function readBackByStatus(status: User['status'], id: string) {
    return async (): Promise<Outcome | undefined> => {
      const user = await store.users.find(id)
      return user?.status === status ? { user } : undefined
    }
  }
}

const REFUSED_FOR_LAST_ADMINISTRATOR: AuditedOutcome<Outcome> = withoutChanges({
  refused: 'last_administrator',
})

/**
 * Deletes within the caller's transaction: ends sessions and keys; erases name and address everywhere, mail included;
 * keeps the ledger. Permanent and idempotent. Null for an unknown id.
 *
 * @param mayDelete evaluated under the account's lock; if it returns false, nothing is deleted
 */
export async function deleteWithin(
  tx: Transaction,
  id: string,
  now: Instant,
  secrets: Secrets,
  mayDelete: (user: User) => boolean = () => true,
): Promise<User | null> {
  // Every transaction locks the address before the account, so that no two of them deadlock.
  const email = (await tx.users.find(id))?.email
  if (email) await tx.magicLinks.lockAddress(email)
  const user = await tx.users.lock(id)
  if (!user || user.status === 'deleted' || !mayDelete(user)) return user
  await endSignIns(tx, user, 'deleted', now)
  await tx.apiKeys.revokeAllOf(id, now)
  if (user.email) await forgetAddress(tx, user.email, secrets)
  await tx.emailChanges.remove(id)
  await tx.outbox.forgetUser(id)
  await tx.audit.eraseReasons(id)
  return tx.users.erase(id, now)
}

/** Erases the address outside the account: in mail (queued or sent), links, send counters and invitations. */
export async function forgetAddress(tx: Transaction, email: EmailAddress, secrets: Secrets): Promise<void> {
  await tx.magicLinks.forgetAddress(email, erasedAddressHash(secrets, email))
  await tx.outbox.forgetRecipient(email)
  await tx.inbox.forgetRecipient(email)
  await tx.invitations.forgetAddress(email)
}

/** Suspends within the caller's transaction. Returns null and writes nothing unless the account was active. */
export async function suspendWithin(tx: AuditedTransaction, id: string, now: Instant): Promise<User | null> {
  const suspendedUser = await tx.users.suspend(id, now)
  if (suspendedUser) await endSignIns(tx, suspendedUser, 'suspended', now)
  return suspendedUser
}

/** Ends sessions and unused sign-in links. */
async function endSignIns(
  tx: Transaction,
  user: User,
  by: 'suspended' | 'deleted',
  now: Instant,
): Promise<void> {
  await tx.sessions.endAllOf(user.id, by, null, { at: now, caller: null })
  if (user.email !== null) await tx.magicLinks.consumeAllOf(user.email, now)
}

function requireUser(user: User | null): User {
  if (!user) throw new KeywayError('not_found', 'There is no such account.')
  return user
}

/** @throws KeywayError `last_administrator` */
function userOf(outcome: Outcome): User | null {
  if ('user' in outcome) return outcome.user
  throw new KeywayError(
    outcome.refused,
    'This is the last active administrator. Make somebody else an administrator first.',
  )
}

function requireUndeleted(outcome: Outcome): User {
  const user = userOf(outcome)
  return requireUser(user?.status === 'deleted' ? null : user)
}
