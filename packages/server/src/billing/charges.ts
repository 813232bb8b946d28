import type { App } from '../apps/app.ts'
import { type Clock, DAY, type Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { instantOf, newId } from '../ids.ts'
import { sha256 } from '../secrets.ts'
import type { Storage, Transaction } from '../store.ts'
import { noUsage, usageRows } from '../usage/usage.ts'
import { mayCharge } from './charge-authorizations.ts'
import type { LedgerEntry } from './ledger.ts'
import type { MicroDollars } from './money.ts'

/** How long a repeated request is recognised by its Idempotency-Key. */
export const IDEMPOTENCY_WINDOW = DAY

export interface WantedCharge {
  userId: string
  /** Positive. */
  amount: MicroDollars
  description: string
}

export interface Charges {
  /**
   * Takes an amount from a user's balance, once for each Idempotency-Key: the same key with the same arguments
   * returns the same entry. A refused charge is not recorded and may be retried with its key.
   *
   * @throws KeywayError `charge_not_authorized` (no authorisation, or no such active user), `insufficient_balance`,
   *   `idempotency_conflict`; `rate_limited` while hundreds of charges of this user are in progress
   */
  charge(app: Pick<App, 'id'>, wanted: WantedCharge, idempotencyKey: string): Promise<LedgerEntry>
}

type Refused = 'charge_not_authorized' | 'insufficient_balance' | 'idempotency_conflict'
type Outcome = { entry: LedgerEntry } | { refused: Refused }

const DETAILS: Record<Refused, string> = {
  charge_not_authorized:
    'This user has not authorised the app to charge the balance, or there is no such user.',
  insufficient_balance: "The user's balance is too low for this amount. Nothing was charged.",
  idempotency_conflict: 'This Idempotency-Key was used for another charge. Use a new one for each charge.',
}

/**
 * The ledger itself stores the Idempotency-Key: an entry's `cause` is unique and derived from it, so a charge and its
 * key are recorded together or not at all.
 */
export function createCharges({ storage, clock }: { storage: Storage; clock: Clock }): Charges {
  return {
    async charge(app, wanted, idempotencyKey) {
      const id = newId(clock.now())
      const origin = `charge:${app.id}:${sha256(idempotencyKey)}`
      const outcome = await storage.runExclusive([`balance:${wanted.userId}`], () =>
        storage.transaction<Outcome>(
          tx => post(tx, { id, appId: app.id, origin }, wanted),
          async store => {
            const entry = await store.billing.findEntry(id)
            return entry ? { entry } : undefined
          },
        ),
      )
      if ('refused' in outcome) throw new KeywayError(outcome.refused, DETAILS[outcome.refused])
      return outcome.entry
    },
  }

  async function post(
    tx: Transaction,
    { id, appId, origin }: { id: string; appId: string; origin: string },
    wanted: WantedCharge,
  ): Promise<Outcome> {
    const now = clock.now()
    const { earlier, cause } = await findEarlier(tx, origin, now)
    if (earlier) return replay(earlier, wanted)
    if (!(await mayCharge(tx, wanted.userId, appId))) return { refused: 'charge_not_authorized' }

    const { userId, amount, description } = wanted
    const entry = await tx.billing.post({
      id,
      userId,
      kind: 'charge',
      amount: -amount,
      appId,
      description,
      cause,
      createdAt: now,
    })
    if (entry) {
      await tx.usage.add(usageRows(userId, null, now, { ...noUsage(), charged: amount }))
      return { entry }
    }
    // Another request with this key won the race, or the balance is too low.
    const raced = await tx.billing.findByCause(cause)
    return raced ? replay(raced, wanted) : { refused: 'insufficient_balance' }
  }
}

/** The earlier charge with this key within the window, if any, and the cause for a new charge. */
async function findEarlier(
  tx: Transaction,
  origin: string,
  now: Instant,
): Promise<{ earlier: LedgerEntry | null; cause: string }> {
  let cause = origin
  let earlier = await tx.billing.findByCause(cause)
  // A key that is reused after its window counts as new. Its cause must still be unique, so it includes the id of the
  // last use. The window begins at the request (the time in the id); the ledger may have moved `createdAt` forward.
  while (earlier && now >= instantOf(earlier.id) + IDEMPOTENCY_WINDOW) {
    cause = `${origin}:${earlier.id}`
    earlier = await tx.billing.findByCause(cause)
  }
  return { earlier, cause }
}

function replay(entry: LedgerEntry, { userId, amount, description }: WantedCharge): Outcome {
  const isSame = entry.userId === userId && entry.amount === -amount && entry.description === description
  return isSame ? { entry } : { refused: 'idempotency_conflict' }
}
