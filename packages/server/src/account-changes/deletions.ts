import { type Clock, DAY, type Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Secrets } from '../secrets.ts'
import type { Storage } from '../store.ts'
import type { User } from '../users/user.ts'
import { deleteWithin } from '../users/users.ts'
import { countMail, throwRateLimited } from './mail-limits.ts'

/**
 * The delay between the request and the deletion. The account works as before until then, so that a request with a
 * stolen session breaks nothing, and the owner, who gets a mail, can cancel it.
 */
export const DELETION_WAIT = 7 * DAY
/** How long a deletion that would leave no administrator is postponed. */
const POSTPONEMENT = DAY
/** Maximum number of accounts that one call of `deleteDue` handles. */
const BATCH = 50

export interface Deletions {
  /**
   * Schedules the deletion of the account and mails its owner. Idempotent: the first request decides the time.
   *
   * @throws KeywayError `not_found`, `last_administrator`, `rate_limited`
   */
  request(userId: string, caller: Caller): Promise<User>
  /** Cancels a requested deletion. Idempotent. @throws KeywayError `not_found` */
  cancel(userId: string, caller: Caller): Promise<User>
  /**
   * Deletes accounts whose delay has passed, with the same effects as a deletion by an administrator. Returns their
   * number. If some could not be deleted, throws the first error after the others were handled.
   */
  deleteDue(): Promise<number>
}

export interface DeletionDeps {
  storage: Storage
  clock: Clock
  secrets: Secrets
  outbox: Outbox
  log: Log
}

type RequestOutcome = { user: User | null } | { refused: 'last_administrator' } | { retryAfter: number }

export function createDeletions({ storage, clock, secrets, outbox, log }: DeletionDeps): Deletions {
  const { store } = storage

  return {
    async request(userId, caller) {
      const account = await store.users.find(userId)
      if (account?.deletesAt != null) return account
      const mailId = newId(clock.now())
      const outcome = await storage.transaction<RequestOutcome>(
        async tx => {
          const now = clock.now()
          await tx.users.lockAdministrators()
          if (await tx.users.isOnlyAdministrator(userId)) return { refused: 'last_administrator' }
          const wait = await countMail(tx.magicLinks, userId, now)
          if (wait !== null) return { retryAfter: wait }
          const deletesAt = now + DELETION_WAIT
          const user = await tx.users.scheduleDeletion(userId, deletesAt, { at: now, caller })
          if (!user?.email) return { user: await tx.users.find(userId) }
          const { network } = caller
          const content = { kind: 'account_deletion_requested', at: now, deletesAt, network } as const
          await outbox.enqueue(tx, { id: mailId, recipient: user.email, userId, content, now })
          return { user }
        },
        async from => {
          const user = await from.users.find(userId)
          return user?.deletesAt != null ? { user } : undefined
        },
      )
      if ('retryAfter' in outcome) throwRateLimited(outcome.retryAfter)
      if ('refused' in outcome) throw lastAdministratorError()
      return requireUndeleted('user' in outcome ? outcome.user : null)
    },

    async cancel(userId, caller) {
      await storage.transaction(
        tx => tx.users.cancelDeletion(userId, { at: clock.now(), caller }),
        async from => (await from.users.find(userId)) ?? undefined,
      )
      return requireUndeleted(await store.users.find(userId))
    },

    async deleteDue() {
      let deletedCount = 0
      const failures: unknown[] = []
      for (const id of await store.users.dueForDeletion(clock.now(), BATCH)) {
        try {
          if (await deleteOrPostpone(id)) deletedCount++
        } catch (error) {
          // One account that cannot be deleted must not hold up the others.
          failures.push(error)
        }
      }
      if (failures.length > 0) throw failures[0]
      return deletedCount
    },
  }

  /**
   * Deletes the account, unless the deletion was cancelled meanwhile; that of the last administrator is postponed.
   * Returns whether the account was deleted.
   */
  async function deleteOrPostpone(id: string): Promise<boolean> {
    const outcome = await storage.transaction(async tx => {
      const now = clock.now()
      await tx.users.lockAdministrators()
      if (await tx.users.isOnlyAdministrator(id)) {
        await tx.users.postponeDeletion(id, now + POSTPONEMENT, now)
        return 'postponed'
      }
      const user = await deleteWithin(tx, id, now, secrets, each => isDue(each, now))
      return user?.status === 'deleted' ? 'deleted' : 'cancelled'
    })
    if (outcome === 'postponed')
      log.warn(
        { user_id: id },
        'The deletion of the last administrator is postponed until there is another one.',
      )
    return outcome === 'deleted'
  }
}

function isDue({ deletesAt }: User, now: Instant): boolean {
  return deletesAt !== null && deletesAt <= now
}

function requireUndeleted(user: User | null): User {
  if (!user || user.status === 'deleted') throw new KeywayError('not_found', 'There is no such account.')
  return user
}

function lastAdministratorError(): KeywayError {
  const detail = 'You are the last active administrator. Make somebody else an administrator first.'
  return new KeywayError('last_administrator', detail)
}
