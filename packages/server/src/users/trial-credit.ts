import { randomBytes } from 'node:crypto'
import { MICROS_PER_DOLLAR, type MicroDollars } from '../billing/money.ts'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { hmac, type Secrets } from '../secrets.ts'
import type { Storage, Transaction } from '../store.ts'
import type { EmailAddress } from './email-address.ts'
import type { User } from './user.ts'

/** What a new account may spend at first. */
export const TRIAL_CREDIT: MicroDollars = 2 * MICROS_PER_DOLLAR

/** A credit, made before the transaction that may give it. */
export interface PreparedCredit {
  id: string
  /** What is remembered of the address after the account is gone. */
  addressHash: string
}

export interface TrialCredit {
  prepare(email: EmailAddress, now: Instant): Promise<PreparedCredit>
  /**
   * Gives the credit once for each address, for ever: who deletes the account and returns gets no second one.
   * `tell` hears how much it was, zero included, and is under way together with the entry.
   */
  give(
    tx: Transaction,
    user: Pick<User, 'id' | 'createdAt'>,
    credit: PreparedCredit,
    tell: (given: MicroDollars) => Promise<void>,
  ): Promise<void>
}

export function createTrialCredit({ storage, secrets }: { storage: Storage; secrets: Secrets }): TrialCredit {
  let pepper: Promise<Buffer> | undefined

  return {
    async prepare(email, now) {
      pepper ??= openPepper(storage, secrets)
      // A failed read must not be remembered as the answer for good.
      const key = await pepper.catch(error => {
        pepper = undefined
        throw error
      })
      return { id: newId(now), addressHash: hmac(key, email).toString('base64url') }
    },

    async give(tx, user, { id, addressHash }, tell) {
      const claimed = await tx.billing.claimTrialCredit(addressHash, user.id, user.createdAt)
      if (!claimed) return tell(0)
      await Promise.all([
        tx.billing.post({
          id,
          userId: user.id,
          kind: 'trial_credit',
          amount: TRIAL_CREDIT,
          appId: null,
          description: 'Trial credit',
          cause: `trial_credit:${user.id}`,
          createdAt: user.createdAt,
        }),
        tell(TRIAL_CREDIT),
      ])
    },
  }
}

const PEPPER = 'address-pepper'
const PEPPER_BYTES = 32

/**
 * The key that address hashes are made under. It lives in the database, sealed, rather than being derived
 * from `KEYWAY_SECRET`: that one rotates, and a rotation must not make old addresses look new. It is made at the
 * first start, so that no backup is older than it. @throws SealError
 */
export async function openPepper(storage: Storage, secrets: Secrets): Promise<Buffer> {
  const { instance } = storage.store
  const sealed =
    (await instance.find(PEPPER)) ??
    (await instance.keep(PEPPER, secrets.seal(PEPPER, randomBytes(PEPPER_BYTES), PEPPER)))
  return secrets.open(PEPPER, sealed, PEPPER)
}
