import type { Clock, Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import type { Secrets } from '../secrets.ts'
import type { Storage, Transaction } from '../store.ts'
import { type EmailAddress, parseEmailAddress } from './email-address.ts'
import { erasedAddressHash } from './erased-address.ts'
import type { User, UserRole } from './user.ts'

export interface Users {
  get(id: string): Promise<User | null>
  /** By id or address. @throws KeywayError `not_found` */
  find(who: string): Promise<User>
  /** @throws KeywayError `not_found` */
  rename(id: string, name: string | null): Promise<User>
  setRole(id: string, role: UserRole): Promise<User>
  /** Ends sessions and links, makes keys answer `account_suspended`, closes connections. Idempotent. */
  suspend(id: string): Promise<User>
  /** Makes the keys usable again; sessions stay ended. */
  activate(id: string): Promise<User>
  /** Ends sessions and keys; erases name and address everywhere, mail included; keeps the ledger. Permanent. */
  delete(id: string): Promise<User>
}

export function createUsers({
  storage,
  clock,
  secrets,
}: {
  storage: Storage
  clock: Clock
  secrets: Secrets
}): Users {
  const { store } = storage

  return {
    get(id) {
      return store.users.find(id)
    },

    async find(who) {
      const id = parseId(who)
      const email = parseEmailAddress(who)
      const user = id ? await store.users.find(id) : email ? await store.users.findByEmail(email) : null
      return required(user)
    },

    async rename(id, name) {
      return required(await store.users.rename(id, name))
    },

    async setRole(id, role) {
      return required(await storage.transaction(tx => tx.users.setRole(id, role)))
    },

    async suspend(id) {
      const user = await storage.transaction(
        async tx => {
          const suspended = await suspendWithin(tx, id, clock.now())
          return suspended ?? tx.users.find(id)
        },
        whenItHasStatus('suspended', id),
      )
      return requireUndeleted(user)
    },

    async activate(id) {
      const user = await storage.transaction(
        async tx => (await tx.users.activate(id, clock.now())) ?? tx.users.find(id),
        whenItHasStatus('active', id),
      )
      return requireUndeleted(user)
    },

    async delete(id) {
      const user = await storage.transaction(
        async tx => {
          const now = clock.now()
          // Lock order everywhere: address, then account.
          const email = (await tx.users.find(id))?.email
          if (email) await tx.magicLinks.lockAddress(email)
          const user = await tx.users.lock(id)
          if (!user || user.status === 'deleted') return user
          await endSignIns(tx, user, 'deleted', now)
          await tx.apiKeys.revokeAllOf(id, now)
          if (user.email) await forgetAddress(tx, user.email)
          return tx.users.erase(id, now)
        },
        whenItHasStatus('deleted', id),
      )
      return required(user)
    },
  }

  /** Erases the address outside the account: in mail (queued or sent), links and send counters. */
  async function forgetAddress(tx: Transaction, email: EmailAddress): Promise<void> {
    await tx.magicLinks.forgetAddress(email, erasedAddressHash(secrets, email))
    await tx.outbox.forgetRecipient(email)
    await tx.inbox.forgetRecipient(email)
  }

  /** After a COMMIT of unknown outcome: these operations are idempotent, so the expected status means success. */
  function whenItHasStatus(status: User['status'], id: string) {
    return async () => {
      const user = await store.users.find(id)
      return user?.status === status ? user : undefined
    }
  }
}

/** Suspends within the caller's transaction. Null, and nothing written, unless the account was active. */
export async function suspendWithin(tx: Transaction, id: string, now: Instant): Promise<User | null> {
  const suspended = await tx.users.suspend(id, now)
  if (suspended) await endSignIns(tx, suspended, 'suspended', now)
  return suspended
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

function required(user: User | null): User {
  if (!user) throw new KeywayError('not_found', 'There is no such account.')
  return user
}

function requireUndeleted(user: User | null): User {
  return required(user?.status === 'deleted' ? null : user)
}
