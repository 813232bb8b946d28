import { createHash, randomBytes } from 'node:crypto'
import { FIRST_PARTY_APP_IDS } from '../apps/app.ts'
import { formatMoney, MICROS_PER_DOLLAR, type MicroDollars } from '../billing/money.ts'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { hmac, type Secrets } from '../secrets.ts'
import { securityEvent } from '../security-events/security-events.ts'
import type { Storage, Transaction } from '../store.ts'
import type { EmailAddress } from './email-address.ts'
import type { User } from './user.ts'

/** What a new account may spend at first. */
export const TRIAL_CREDIT: MicroDollars = 2 * MICROS_PER_DOLLAR

/** What a new account is made of, made before the transaction that may need it. */
export interface PreparedAccount {
  user: User & { email: EmailAddress }
  /** What is remembered of the address after the account is gone. */
  addressHash: string
  creditId: string
}

export interface Onboarding {
  /** The account that the address would get now. Costs the same whether or not it will be needed. */
  prepare(email: EmailAddress, now: Instant): Promise<PreparedAccount>
  /**
   * Gives a user who was inserted in this same transaction all that a new account has: trial credit, free
   * subscription, the two authorisations, the welcome mail. All of it or, with the transaction, nothing.
   */
  onboard(tx: Transaction, prepared: PreparedAccount, caller: Caller): Promise<void>
}

export interface OnboardingDeps {
  storage: Storage
  secrets: Secrets
  outbox: Outbox
}

export function createOnboarding({ storage, secrets, outbox }: OnboardingDeps): Onboarding {
  let pepper: Promise<Buffer> | undefined

  return {
    async prepare(email, now) {
      pepper ??= openPepper(storage, secrets)
      // A failed read must not be remembered as the answer for good.
      const key = await pepper.catch(error => {
        pepper = undefined
        throw error
      })
      return {
        user: { id: newId(now), email, name: null, role: 'user', status: 'active', createdAt: now },
        addressHash: hmac(key, email).toString('base64url'),
        creditId: newId(now),
      }
    },

    async onboard(tx, prepared, caller) {
      const { user } = prepared
      const now = user.createdAt
      // None of these needs what another answers, so all are under way together: one wait instead of eight.
      await Promise.all([
        creditAndWelcome(tx, prepared),
        tx.billing.insertSubscription({ userId: user.id, plan: 'free', status: 'active', startedAt: now }),
        ...FIRST_PARTY_APP_IDS.map(appId => authorize(tx, user, appId)),
        tx.securityEvents.insert(securityEvent('account_created', user.id, now, caller)),
      ])
    },
  }

  /** The credit once for each address, for ever: who deletes the account and returns gets no second one. */
  async function creditAndWelcome(tx: Transaction, prepared: PreparedAccount): Promise<void> {
    const { user, addressHash, creditId } = prepared
    const claimed = await tx.billing.claimTrialCredit(addressHash, user.id, user.createdAt)
    if (!claimed) return welcome(tx, user, 0)
    await Promise.all([
      tx.billing.post({
        id: creditId,
        userId: user.id,
        kind: 'trial_credit',
        amount: TRIAL_CREDIT,
        appId: null,
        description: 'Trial credit',
        cause: `trial_credit:${user.id}`,
        createdAt: user.createdAt,
      }),
      welcome(tx, user, TRIAL_CREDIT),
    ])
  }

  function welcome(tx: Transaction, user: PreparedAccount['user'], credit: MicroDollars): Promise<void> {
    return outbox.enqueue(tx, {
      id: welcomeMailId(user.id),
      recipient: user.email,
      userId: user.id,
      content: { kind: 'welcome', trialCredit: formatMoney(credit) },
      now: user.createdAt,
    })
  }
}

async function authorize(tx: Transaction, user: User, appId: string): Promise<void> {
  if (await tx.billing.authorize(user.id, appId, user.createdAt)) return
  throw new Error(`the first-party app ${appId} is not registered`)
}

/** One id a user (a UUID version 8, RFC 9562), so that no retry can queue a second welcome. */
function welcomeMailId(userId: string): string {
  const digest = createHash('sha256').update(`welcome\0${userId}`).digest('hex')
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
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
