import { createHash } from 'node:crypto'
import { FIRST_PARTY_APP_IDS } from '../apps/first-party-apps.ts'
import { formatMoney, type MicroDollars } from '../billing/money.ts'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Secrets } from '../secrets.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Storage, Transaction } from '../store.ts'
import type { EmailAddress } from './email-address.ts'
import { createTrialCredit, type PreparedCredit } from './trial-credit.ts'
import type { User } from './user.ts'

/** A new account, created before the transaction that may insert it. */
export interface PreparedAccount {
  user: User & { email: EmailAddress }
  credit: PreparedCredit
}

export interface Onboarding {
  /**
   * Prepares an account for the address. Must be called whether or not an account exists, so that timing does not
   * reveal whether one does.
   */
  prepare(email: EmailAddress, locale: string | null, now: Instant): Promise<PreparedAccount>
  /**
   * Gives a user everything that a new account has: trial credit, free subscription, the authorisations for first-party
   * apps to charge, a security event and the welcome mail. Runs in the transaction that inserted the user or, for an
   * imported user, in that of the first sign-in.
   *
   * @param amount the amount of the trial credit
   */
  onboard(tx: Transaction, prepared: PreparedAccount, caller: Caller, amount: MicroDollars): Promise<void>
}

export interface OnboardingDeps {
  storage: Storage
  secrets: Secrets
  outbox: Outbox
}

export function createOnboarding({ storage, secrets, outbox }: OnboardingDeps): Onboarding {
  const trialCredit = createTrialCredit({ storage, secrets })

  return {
    async prepare(email, locale, now) {
      const credit = await trialCredit.prepare(email, now)
      return {
        user: {
          id: newId(now),
          email,
          name: null,
          role: 'user',
          status: 'active',
          createdAt: now,
          deletesAt: null,
          locale,
        },
        credit,
      }
    },

    async onboard(tx, prepared, caller, amount) {
      const { user } = prepared
      const now = user.createdAt
      await Promise.all([
        trialCredit.give(tx, user, { ...prepared.credit, amount }, credit =>
          enqueueWelcomeMail(tx, user, credit),
        ),
        tx.billing.insertSubscription({ userId: user.id, plan: 'free', status: 'active', startedAt: now }),
        ...FIRST_PARTY_APP_IDS.map(appId => authorize(tx, user, appId)),
        tx.securityEvents.insert(securityEvent('account_created', user.id, now, caller)),
      ])
    },
  }

  function enqueueWelcomeMail(
    tx: Transaction,
    user: PreparedAccount['user'],
    credit: MicroDollars,
  ): Promise<void> {
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

/** Derived from the user's id (a UUID version 8, RFC 9562), so that no retry queues a second welcome mail. */
function welcomeMailId(userId: string): string {
  const digest = createHash('sha256').update(`welcome\0${userId}`).digest('hex')
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}
