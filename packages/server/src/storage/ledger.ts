import type { PostedEntry } from '../billing/billing-store.ts'
import type { LedgerEntry } from '../billing/ledger.ts'
import type { SpendCaps } from '../billing/spend.ts'
import type { Instant } from '../clock.ts'
import type { SpendPeriod } from '../limits/limit.ts'
import type { Db } from './engine.ts'
import { addSpend } from './key-spend.ts'
import type { LedgerEntryRow } from './schema.ts'

/**
 * Posts an entry. The balance is updated first, which locks its row until the commit. If the cause was used before, the
 * insert finds a conflict, and the amount is reverted.
 *
 * @returns the posted entry; null if the balance is too low or the cause was used; the period of a spend limit that
 * would be exceeded
 */
export async function post(
  tx: Db,
  entry: Omit<LedgerEntry, 'balanceAfter'>,
  caps?: SpendCaps,
): Promise<PostedEntry | SpendPeriod | null> {
  const { userId, amount, lineageId } = entry
  const balanceAfter = await changeBalance(tx, userId, amount)
  if (balanceAfter === null) return null
  const createdAt = await creationTimeAfterLast(tx, entry)
  const addition = lineageId === null ? null : { lineageId, amount: -amount, at: createdAt }
  const spent = addition && (await addSpend(tx, addition, caps))
  if (typeof spent === 'string') {
    await changeBalance(tx, userId, -amount)
    return spent
  }
  const inserted = await tx
    .insertInto('ledger_entries')
    .values({ ...toRow(entry), balance_after: balanceAfter, created_at: createdAt })
    .onConflict(conflict => conflict.column('cause').doNothing())
    .returningAll()
    .executeTakeFirst()
  if (inserted) return { entry: toEntry(inserted), spent }
  await changeBalance(tx, userId, -amount)
  if (addition) await addSpend(tx, { ...addition, amount })
  return null
}

/** Adds the amount and returns the new balance. Null if the balance would be below zero; then it is not changed. */
async function changeBalance(tx: Db, userId: string, amount: number): Promise<number | null> {
  const row = await (amount < 0 ? deduct(tx, userId, amount) : credit(tx, userId, amount)).executeTakeFirst()
  return row?.balance ?? null
}

function deduct(tx: Db, userId: string, amount: number) {
  return tx
    .updateTable('balances')
    .set(eb => ({ balance: eb('balance', '+', amount) }))
    .where('user_id', '=', userId)
    .where(eb => eb(eb('balance', '+', amount), '>=', 0))
    .returning('balance')
}

function credit(tx: Db, userId: string, amount: number) {
  return tx
    .insertInto('balances')
    .values({ user_id: userId, balance: amount })
    .onConflict(conflict =>
      conflict.column('user_id').doUpdateSet(eb => ({ balance: eb('balances.balance', '+', amount) })),
    )
    .returning('balance')
}

/**
 * The creation time of an entry, determined while the balance is locked: strictly later than that of the user's last
 * entry. Otherwise waiting for the lock, and differences between the nodes' clocks, could put entries out of order.
 */
async function creationTimeAfterLast(
  tx: Db,
  { userId, createdAt }: Pick<LedgerEntry, 'userId' | 'createdAt'>,
): Promise<Instant> {
  const lastEntry = await tx
    .selectFrom('ledger_entries')
    .select(eb => eb.fn.max('created_at').as('at'))
    .where('user_id', '=', userId)
    .where('created_at', '>=', createdAt)
    .executeTakeFirst()
  return lastEntry?.at == null ? createdAt : lastEntry.at + 1
}

export function toRow(entry: Omit<LedgerEntry, 'balanceAfter'>): Omit<LedgerEntryRow, 'balance_after'> {
  return {
    id: entry.id,
    user_id: entry.userId,
    kind: entry.kind,
    amount: entry.amount,
    app_id: entry.appId,
    description: entry.description,
    cause: entry.cause,
    created_at: entry.createdAt,
    key_id: entry.keyId,
    lineage_id: entry.lineageId,
  }
}

export function toEntry(row: LedgerEntryRow): LedgerEntry {
  return {
    id: row.id,
    userId: row.user_id,
    kind: row.kind,
    amount: row.amount,
    balanceAfter: row.balance_after,
    appId: row.app_id,
    description: row.description,
    cause: row.cause,
    createdAt: row.created_at,
    keyId: row.key_id,
    lineageId: row.lineage_id,
  }
}
