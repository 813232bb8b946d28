import { randomBytes } from 'node:crypto'
import type { MicroDollars } from '../billing/money.ts'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { hmac, type Secrets } from '../secrets.ts'
import type { Storage, Transaction } from '../store.ts'
import type { EmailAddress } from './email-address.ts'
import type { User } from './user.ts'

/** What a grant of the trial credit needs, created before the transaction that may grant it. */
export interface PreparedCredit {
  id: string
  /** Keyed hash of the address; kept after the account is deleted. */
  addressHash: string
}

export interface TrialCredit {
  prepare(email: EmailAddress, now: Instant): Promise<PreparedCredit>
  /**
   * Grants the credit once per address, permanently: signing up again after a deletion grants none, even if the first
   * amount was 0. `onGranted` is called with the amount (0 for none), and runs concurrently with the insert of the
   * ledger entry.
   */
  give(
    tx: Transaction,
    user: Pick<User, 'id' | 'createdAt'>,
    credit: PreparedCredit & { amount: MicroDollars },
    onGranted: (amount: MicroDollars) => Promise<void>,
  ): Promise<void>
}

export function createTrialCredit({ storage, secrets }: { storage: Storage; secrets: Secrets }): TrialCredit {
  let pepper: Promise<Buffer> | undefined

  return {
    async prepare(email, now) {
      pepper ??= openPepper(storage, secrets)
      // A failed read must not be cached.
      const key = await pepper.catch(error => {
        pepper = undefined
        throw error
      })
      return { id: newId(now), addressHash: hmac(key, email).toString('base64url') }
    },

    async give(tx, user, { id, addressHash, amount }, onGranted) {
      const isClaimed = await tx.billing.claimTrialCredit(addressHash, user.id, user.createdAt)
      if (!isClaimed || amount === 0) return onGranted(0)
      await Promise.all([
        tx.billing.post({
          id,
          userId: user.id,
          kind: 'trial_credit',
          amount,
          appId: null,
          description: 'Trial credit',
          cause: `trial_credit:${user.id}`,
          keyId: null,
          lineageId: null,
          createdAt: user.createdAt,
        }),
        onGranted(amount),
      ])
    },
  }
}

const PEPPER_NAME = 'address-pepper'
const PEPPER_BYTES = 32

/**
 * The key of address hashes. It is stored in the database, sealed, rather than derived from `KEYWAY_SECRET`, since
 * rotating that secret must not change the hashes. Created at the first start, so that every backup contains it.
 * @throws SealError
 */
export async function openPepper(storage: Storage, secrets: Secrets): Promise<Buffer> {
  const { instance } = storage.store
  const sealedPepper =
    (await instance.find(PEPPER_NAME)) ??
    (await instance.findOrInsert(
      PEPPER_NAME,
      secrets.seal(PEPPER_NAME, randomBytes(PEPPER_BYTES), PEPPER_NAME),
    ))
  return secrets.open(PEPPER_NAME, sealedPepper, PEPPER_NAME)
}
