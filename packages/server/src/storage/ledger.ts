import { expressionBuilder } from 'kysely'
import type { LedgerEntry } from '../billing/ledger.ts'
import type { Db } from './engine.ts'
import type { LedgerEntryRow, Schema } from './schema.ts'

/**
 * Updates the balance first, which locks its row until the commit. If the cause was used before, the insert violates
 * the entry's unique key, and the amount is reverted.
 */
export async function post(tx: Db, entry: Omit<LedgerEntry, 'balanceAfter'>): Promise<LedgerEntry | null> {
  const { userId, amount } = entry
  const balanceAfter = await move(tx, userId, amount)
  if (balanceAfter === null) return null
  const inserted = await tx
    .insertInto('ledger_entries')
    .values({
      id: entry.id,
      user_id: userId,
      kind: entry.kind,
      amount,
      balance_after: balanceAfter,
      app_id: entry.appId,
      description: entry.description,
      cause: entry.cause,
      created_at: afterTheLast(tx, entry),
    })
    .onConflict(conflict => conflict.column('cause').doNothing())
    .returningAll()
    .executeTakeFirst()
  if (inserted) return toEntry(inserted)
  await move(tx, userId, -amount)
  return null
}

/** Adds the amount and returns the new balance; null, and nothing changed, if it would be below zero. */
async function move(tx: Db, userId: string, amount: number): Promise<number | null> {
  const row = await (amount < 0 ? take(tx, userId, amount) : add(tx, userId, amount)).executeTakeFirst()
  return row?.balance ?? null
}

function take(tx: Db, userId: string, amount: number) {
  return tx
    .updateTable('balances')
    .set(eb => ({ balance: eb('balance', '+', amount) }))
    .where('user_id', '=', userId)
    .where(eb => eb(eb('balance', '+', amount), '>=', 0))
    .returning('balance')
}

function add(tx: Db, userId: string, amount: number) {
  return tx
    .insertInto('balances')
    .values({ user_id: userId, balance: amount })
    .onConflict(conflict =>
      conflict.column('user_id').doUpdateSet(eb => ({ balance: eb('balances.balance', '+', amount) })),
    )
    .returning('balance')
}

/**
 * The creation time of an entry whose balance is locked: strictly later than the user's last one. Otherwise waiting
 * for the lock, and clock differences between nodes, would put entries out of order.
 */
function afterTheLast(tx: Db, { userId, createdAt }: Pick<LedgerEntry, 'userId' | 'createdAt'>) {
  const next = tx
    .selectFrom('ledger_entries')
    .select(eb => eb(eb.fn.max('created_at'), '+', 1).as('next'))
    .where('user_id', '=', userId)
    .where('created_at', '>=', createdAt)
  return expressionBuilder<Schema>().fn.coalesce(next, expressionBuilder<Schema>().val(createdAt))
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
  }
}
