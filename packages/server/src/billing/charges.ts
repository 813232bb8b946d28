import { type ApiKey, statusOf } from '../api-keys/api-key.ts'
import type { App } from '../apps/app.ts'
import { type Clock, DAY, type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { instantOf, newId } from '../ids.ts'
import type { SpendPeriod } from '../limits/limit.ts'
import { sha256 } from '../secrets.ts'
import type { Storage, Transaction } from '../store.ts'
import { noUsage, usageRows } from '../usage/usage.ts'
import { mayCharge } from './charge-authorizations.ts'
import type { LedgerEntry } from './ledger.ts'
import type { MicroDollars } from './money.ts'
import { capsOf, endOf, type KeySpend, NO_CAPS, NOTHING_SPENT } from './spend.ts'

/** How long a repeated request is recognised by its Idempotency-Key. */
export const IDEMPOTENCY_WINDOW = DAY

export interface WantedCharge {
  userId: string
  /**
   * An active key of the user, whose spend limits the charge counts towards; null or absent for a charge without a key.
   */
  keyId?: string | null
  /** Positive. */
  amount: MicroDollars
  description: string
}

export interface Charges {
  /**
   * Charges an amount to a user's balance, once for each Idempotency-Key of the app within `IDEMPOTENCY_WINDOW`: the
   * same key with the same arguments returns the same entry. A refused charge is not recorded and may be retried with
   * its key.
   *
   * @throws KeywayError `charge_not_authorized` (no authorisation, no such active user, or no such active key of the
   *   user), `insufficient_balance`, `spend_limit_reached`, `idempotency_conflict`; `rate_limited` while hundreds of
   *   charges of this user are in progress
   */
  charge(app: Pick<App, 'id'>, wanted: WantedCharge, idempotencyKey: string): Promise<LedgerEntry>
}

/**
 * Called for a charge with a key that is booked or refused by a spend limit, in its transaction, with what the key and
 * its predecessors by rotation have spent, including the charge if it is booked.
 */
export type OnSpend = (tx: Transaction, spend: KeySpend) => Promise<void>

type ChargeRefusal = 'charge_not_authorized' | 'insufficient_balance' | 'idempotency_conflict'
type Outcome =
  | { entry: LedgerEntry }
  | { refused: ChargeRefusal }
  | { exceededPeriod: SpendPeriod; at: Instant }

const REFUSAL_DETAILS: Record<ChargeRefusal, string> = {
  charge_not_authorized:
    'This user has not authorised the app to charge the balance, there is no such user, or key_id names no active key of the user.',
  insufficient_balance: "The user's balance is too low for this amount. Nothing was charged.",
  idempotency_conflict: 'This Idempotency-Key was used for another charge. Use a new one for each charge.',
}

export function notAuthorized(): KeywayError {
  return new KeywayError('charge_not_authorized', REFUSAL_DETAILS.charge_not_authorized)
}

/**
 * The ledger itself stores the Idempotency-Key: an entry's `cause` is unique and derived from it, so a charge and its
 * key are recorded together or not at all.
 */
export function createCharges({
  storage,
  clock,
  onSpend = async () => {},
}: {
  storage: Storage
  clock: Clock
  onSpend?: OnSpend
}): Charges {
  return {
    async charge(app, wanted, idempotencyKey) {
      const id = newId(clock.now())
      const baseCause = `charge:${app.id}:${sha256(idempotencyKey)}`
      const outcome = await storage.runExclusive([`balance:${wanted.userId}`], () =>
        storage.transaction<Outcome>(
          tx => post(tx, { id, appId: app.id, baseCause }, wanted),
          async store => {
            const entry = await store.billing.findEntry(id)
            return entry ? { entry } : undefined
          },
        ),
      )
      if ('refused' in outcome) throw new KeywayError(outcome.refused, REFUSAL_DETAILS[outcome.refused])
      if ('exceededPeriod' in outcome) throw limitReachedError(outcome.exceededPeriod, outcome.at)
      return outcome.entry
    },
  }

  async function post(
    tx: Transaction,
    { id, appId, baseCause }: { id: string; appId: string; baseCause: string },
    wanted: WantedCharge,
  ): Promise<Outcome> {
    const now = clock.now()
    const { earlier: earlierEntry, cause } = await findEarlierCharge(tx, baseCause, now)
    if (earlierEntry) return repeatedOutcome(earlierEntry, wanted)
    if (!(await mayCharge(tx, wanted.userId, appId))) return { refused: 'charge_not_authorized' }

    const key = wanted.keyId ? await activeKeyOf(tx, wanted.userId, wanted.keyId, now) : null
    if (wanted.keyId && !key) return { refused: 'charge_not_authorized' }

    const { userId, amount, description } = wanted
    const caps = key ? capsOf(key.limits.spend, key.operatorLimits.spend) : NO_CAPS
    const entry = {
      id,
      userId,
      kind: 'charge' as const,
      amount: -amount,
      appId,
      description,
      cause,
      createdAt: now,
      keyId: key?.id ?? null,
      lineageId: key?.lineageId ?? null,
    }
    const chargeResult = await tx.billing.charge(entry, caps)
    if (typeof chargeResult === 'string') {
      const spent = (await tx.billing.spentOf([key!.lineageId])).get(key!.lineageId) ?? NOTHING_SPENT
      await onSpend(tx, { key: key!, caps, spent, amount: 0, refusedBy: chargeResult, at: now })
      return { exceededPeriod: chargeResult, at: now }
    }
    if (chargeResult) {
      const { createdAt: at } = chargeResult.entry
      if (key) await onSpend(tx, { key, caps, spent: chargeResult.spent!, amount, refusedBy: null, at })
      await tx.usage.add(usageRows(userId, key?.id ?? null, now, { ...noUsage(), charged: amount }))
      return { entry: chargeResult.entry }
    }
    // A concurrent request with this Idempotency-Key was first, or the balance is too low.
    const concurrentEntry = await tx.billing.findByCause(cause)
    return concurrentEntry ? repeatedOutcome(concurrentEntry, wanted) : { refused: 'insufficient_balance' }
  }
}

/**
 * Locks the key's row, so that a concurrent revocation waits until the charge is booked. Lock order everywhere: key,
 * then balance.
 */
async function activeKeyOf(
  tx: Transaction,
  userId: string,
  id: string,
  now: Instant,
): Promise<ApiKey | null> {
  const key = await tx.apiKeys.lockOwned(userId, id)
  return key && statusOf(key, now) === 'active' ? key : null
}

function limitReachedError(per: SpendPeriod, at: Instant): KeywayError {
  const end = endOf(per, at)
  const period = per === 'total' ? 'in total' : `for this ${per} (UTC)`
  return new KeywayError(
    'spend_limit_reached',
    `This charge would pass what the key may spend ${period}. Nothing was charged.`,
    end === null ? {} : { retryAfter: Math.ceil((end - at) / SECOND) },
  )
}

/**
 * `earlier` is the charge with this Idempotency-Key within the last IDEMPOTENCY_WINDOW. If it is null, `cause` is the
 * cause of a new charge, which no entry of the ledger has yet.
 */
async function findEarlierCharge(
  tx: Transaction,
  baseCause: string,
  now: Instant,
): Promise<{ earlier: LedgerEntry | null; cause: string }> {
  let cause = baseCause
  let earlierEntry = await tx.billing.findByCause(cause)
  // An Idempotency-Key that is reused after IDEMPOTENCY_WINDOW counts as new. The cause must still be unique, so it
  // includes the id of the last entry with this Idempotency-Key. The window begins at that entry's request, whose time
  // is in the id; `createdAt` may be later.
  while (earlierEntry && now >= instantOf(earlierEntry.id) + IDEMPOTENCY_WINDOW) {
    cause = `${baseCause}:${earlierEntry.id}`
    earlierEntry = await tx.billing.findByCause(cause)
  }
  return { earlier: earlierEntry, cause }
}

function repeatedOutcome(entry: LedgerEntry, { userId, keyId, amount, description }: WantedCharge): Outcome {
  const isSame =
    entry.userId === userId &&
    entry.keyId === (keyId ?? null) &&
    entry.amount === -amount &&
    entry.description === description
  return isSame ? { entry } : { refused: 'idempotency_conflict' }
}
