import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { invalidRequest, KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import { sha256 } from '../secrets.ts'
import type { LedgerEntry } from './ledger.ts'
import { formatMoney, MAX_BALANCE, type MicroDollars } from './money.ts'

export interface WantedCredit {
  userId: string
  /** Positive. */
  amount: MicroDollars
  description: string
}

export interface Credits {
  /**
   * Adds an amount to a person's balance, once for each Idempotency-Key, without a time limit: the same key with the
   * same arguments returns the same entry.
   *
   * @throws KeywayError `not_found` (unknown or deleted), `idempotency_conflict`, `invalid_request` (a balance
   *   above `MAX_BALANCE`)
   */
  grant(wanted: WantedCredit, idempotencyKey: string, by: ActedBy): Promise<LedgerEntry>
}

type Outcome = { entry: LedgerEntry } | { refused: 'not_found' | 'idempotency_conflict' | 'too_much' }

export function createCredits({ clock, audit }: { clock: Clock; audit: Audit }): Credits {
  return {
    async grant(wanted, idempotencyKey, by) {
      const id = newId(clock.now())
      const cause = `credit:${sha256(idempotencyKey)}`
      const outcome = await audit.perform<Outcome>(
        by,
        async tx => {
          const earlierEntry = await tx.billing.findByCause(cause)
          if (earlierEntry) return withoutChanges(repeatedOutcome(earlierEntry, wanted))
          const user = await tx.users.lock(wanted.userId)
          if (!user || user.status === 'deleted') return withoutChanges({ refused: 'not_found' })
          const { userId, amount, description } = wanted
          // No concurrent transaction can raise the balance: credits hold the lock of the user's row, and charges only
          // lower it.
          if ((await tx.billing.balance(userId)) + amount > MAX_BALANCE)
            return withoutChanges({ refused: 'too_much' })
          const entry = await tx.billing.post({
            id,
            userId,
            kind: 'credit',
            amount,
            appId: null,
            description,
            cause,
            createdAt: clock.now(),
            keyId: null,
            lineageId: null,
          })
          if (!entry) return withoutChanges(await concurrentOutcome(tx.billing.findByCause(cause), wanted))
          return auditedOutcome<Outcome>(
            { entry },
            {
              type: 'user.credit_granted',
              subject: { type: 'user', id: userId, user_id: userId },
              before: { balance: formatMoney(entry.balanceAfter - amount) },
              after: { balance: formatMoney(entry.balanceAfter), ledger_entry_id: id },
            },
          )
        },
        async store => {
          const entry = await store.billing.findEntry(id)
          return entry ? { entry } : undefined
        },
      )
      if ('entry' in outcome) return outcome.entry
      if (outcome.refused === 'too_much')
        throw invalidRequest([
          { field: 'amount', message: `would take the balance above ${formatMoney(MAX_BALANCE)}` },
        ])
      throw new KeywayError(outcome.refused, DETAILS[outcome.refused])
    },
  }
}

const DETAILS = {
  not_found: 'There is no such account.',
  idempotency_conflict: 'This Idempotency-Key was used for another credit. Use a new one for each credit.',
} as const

/** The outcome if a concurrent call with this Idempotency-Key created its entry first. */
async function concurrentOutcome(found: Promise<LedgerEntry | null>, wanted: WantedCredit): Promise<Outcome> {
  const entry = await found
  return entry ? repeatedOutcome(entry, wanted) : { refused: 'idempotency_conflict' }
}

function repeatedOutcome(entry: LedgerEntry, { userId, amount, description }: WantedCredit): Outcome {
  const isSame = entry.userId === userId && entry.amount === amount && entry.description === description
  return isSame ? { entry } : { refused: 'idempotency_conflict' }
}
