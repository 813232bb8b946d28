import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import { BY_SETTING } from '../audit/audit-event.ts'
import type { Clock, Instant } from '../clock.ts'
import type { Log } from '../log.ts'
import { hmac, type Secrets } from '../secrets.ts'
import type { Storage, Transaction } from '../store.ts'
import type { EmailAddress } from './email-address.ts'
import { openPepper } from './trial-credit.ts'
import type { User } from './user.ts'
import { roleChange } from './user-changes.ts'

/** The administrators that `KEYWAY_ADMIN_EMAILS` lists. */
export interface ListedAdministrators {
  /**
   * Compares the setting with the list that was stored at the last start. New addresses may claim the role. A person
   * who claimed the role with an address that is no longer listed loses it, unless no administrator would be left.
   */
  apply(): Promise<void>
  /** The keyed hash of the address if it is listed, else null. May query the database: call it before a transaction. */
  hashIfListed(email: EmailAddress): Promise<string | null>
  /**
   * Makes the user an administrator, unless the role was claimed with this address already since it was listed. Returns
   * the user with the resulting role. Must come last in a transaction, since it locks the head of the audit chain.
   */
  claim(tx: Transaction, addressHash: string, user: User, now: Instant): Promise<User>
  /** The keyed hash of any address. A change of a role needs it, to record a listed address as claimed. */
  hashOf(email: EmailAddress): Promise<string>
}

const BY_ADMIN_EMAILS_SETTING: ActedBy = { actor: BY_SETTING, caller: null, requestId: null, reason: null }

export function createListedAdministrators({
  storage,
  clock,
  secrets,
  audit,
  log,
  adminEmails,
}: {
  storage: Storage
  clock: Clock
  secrets: Secrets
  audit: Audit
  log: Log
  adminEmails: readonly EmailAddress[]
}): ListedAdministrators {
  const { administrators } = storage.store
  const listedEmails = new Set(adminEmails)

  return {
    hashOf,

    async apply() {
      const listedHashes = new Set(await Promise.all([...listedEmails].map(hashOf)))
      const storedAdministrators = await administrators.list()
      for (const hash of listedHashes)
        if (!storedAdministrators.some(({ addressHash }) => addressHash === hash))
          await administrators.add(hash, clock.now())
      for (const { addressHash, userId } of storedAdministrators)
        if (!listedHashes.has(addressHash)) await unlist(addressHash, userId)
    },

    async hashIfListed(email) {
      return listedEmails.has(email) ? await hashOf(email) : null
    },

    async claim(tx, addressHash, user, now) {
      if (!(await tx.administrators.claim(addressHash, user.id, now)) || user.role === 'admin') return user
      return audit.performWithin(tx, BY_ADMIN_EMAILS_SETTING, async audited => {
        const admin = await audited.users.setRole(user.id, 'admin', now)
        return auditedOutcome(admin ?? user, roleChange(user, 'admin'))
      })
    },
  }

  async function hashOf(email: EmailAddress): Promise<string> {
    return hmac(await openPepper(storage, secrets), `administrator\0${email}`).toString('base64url')
  }

  async function unlist(addressHash: string, userId: string | null): Promise<void> {
    const keepsRole = await audit.perform(BY_ADMIN_EMAILS_SETTING, async tx => {
      await tx.users.lockAdministrators()
      const user = userId === null ? null : await tx.users.lock(userId)
      if (user?.role === 'admin' && (await tx.users.isOnlyAdministrator(user.id))) return withoutChanges(true)
      await tx.administrators.remove(addressHash)
      if (user?.role !== 'admin') return withoutChanges(false)
      await tx.users.setRole(user.id, 'user', clock.now())
      return auditedOutcome(false, roleChange(user, 'user'))
    })
    if (keepsRole)
      log.warn(
        { user_id: userId },
        'KEYWAY_ADMIN_EMAILS no longer lists the last administrator, who keeps the role',
      )
  }
}
