import { earlierOf } from '../backup/journal-digest.ts'
import { type EntryOf, type JournalEntry, toLedgerEntry } from '../backup/journal-entry.ts'
import { ownBucketNamesOf } from '../magic-links/send-limits.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { Db } from './engine.ts'
import { addSpend } from './key-spend.ts'
import { toRow } from './ledger.ts'
import { createPolicyStore } from './policies.ts'
import { forgetSends } from './send-limits.ts'

/** Re-applies an entry to a restored database. False if the backup lacks its key, account or app. */
export async function applyJournalEntry(db: Db, entry: JournalEntry): Promise<boolean> {
  switch (entry.type) {
    case 'api_key':
      return applyKey(db, entry)
    case 'user':
      return applyUser(db, entry)
    case 'ledger':
      return applyLedger(db, entry)
    case 'trial_credit':
      return applyTrialCredit(db, entry)
    case 'charge_authorization':
      return applyAuthorization(db, entry)
    case 'consent':
      return applyConsent(db, entry)
    case 'app_secrets':
      return applyAppSecrets(db, entry)
    case 'policies':
      return applyPolicies(db, entry)
    case 'opened':
    case 'closed':
    case 'session':
    case 'magic_link':
    case 'invitation':
      return true // The first two mark the ends of a file; a restore ends all sessions, links and invitations.
  }
}

async function applyKey(db: Db, entry: EntryOf<'api_key'>): Promise<boolean> {
  const key = await db.selectFrom('api_keys').selectAll().where('id', '=', entry.id).executeTakeFirst()
  if (!key) return false
  await db
    .updateTable('api_keys')
    .set({
      // A revocation is never undone.
      revoked_at: key.revoked_at ?? entry.revoked_at,
      expires_at: earlierOf(key.expires_at, entry.expires_at),
      allowed_networks: JSON.stringify(entry.allowed_networks),
    })
    .where('id', '=', entry.id)
    .execute()
  return true
}

async function applyUser(db: Db, entry: EntryOf<'user'>): Promise<boolean> {
  const { id, status, role, deletes_at, at } = entry
  const user = await db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()
  if (!user || user.status === 'deleted') return user !== undefined
  if (status !== 'deleted') {
    await db
      .updateTable('users')
      .set({
        status: status === 'suspended' ? 'suspended' : 'active',
        ...(role && { role }),
        ...(deletes_at !== undefined && { deletes_at }),
      })
      .where('id', '=', id)
      .execute()
    return true
  }
  await db
    .updateTable('users')
    .set({ status: 'deleted', email: null, name: null, external_id: null, deleted_at: at, deletes_at: null })
    .where('id', '=', id)
    .execute()
  if (user.email !== null) await forgetAddress(db, user.email)
  await db.deleteFrom('messages').where('user_id', '=', id).execute()
  await db.deleteFrom('audit_reasons').where('user_id', '=', id).execute()
  await db
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where('user_id', '=', id)
    .where('revoked_at', 'is', null)
    .execute()
  return true
}

/** Replaces the app's secrets with those of the entry, and removes the app if it was removed since the backup. */
async function applyAppSecrets(
  db: Db,
  { id, secrets, removed_at }: EntryOf<'app_secrets'>,
): Promise<boolean> {
  const app = await db.selectFrom('apps').select('id').where('id', '=', id).executeTakeFirst()
  if (!app) return false
  await db.deleteFrom('app_secrets').where('app_id', '=', id).execute()
  if (removed_at !== undefined)
    await db.updateTable('apps').set({ audience: null, removed_at }).where('id', '=', id).execute()
  for (const { hash, created_at } of secrets)
    await db.insertInto('app_secrets').values({ app_id: id, secret_hash: hash, created_at }).execute()
  return true
}

/**
 * Deletes the invitations, mails and counted sends of an address, as the deletion of its account did, and its sign-in
 * links, which the restore has ended (`RestoreTransaction.endSignIns`).
 */
async function forgetAddress(db: Db, email: EmailAddress): Promise<void> {
  await db.deleteFrom('magic_links').where('email', '=', email).execute()
  await db.deleteFrom('invitations').where('email', '=', email).execute()
  await db.deleteFrom('messages').where('recipient', '=', email).execute()
  await forgetSends(db, ownBucketNamesOf(email))
}

async function applyLedger(db: Db, { entry: journaled }: EntryOf<'ledger'>): Promise<boolean> {
  const entry = toLedgerEntry(journaled)
  const { userId, amount, lineageId, createdAt } = entry
  if (!(await hasUser(db, userId))) return false
  const insertedRow = await db
    .insertInto('ledger_entries')
    .values({ ...toRow(entry), balance_after: entry.balanceAfter })
    .onConflict(conflict => conflict.column('cause').doNothing())
    .returning('id')
    .executeTakeFirst()
  if (!insertedRow) return true // The backup has the entry already.
  await db
    .insertInto('balances')
    .values({ user_id: userId, balance: 0 })
    .onConflict(conflict => conflict.column('user_id').doNothing())
    .execute()
  await db
    .updateTable('balances')
    .set(eb => ({ balance: eb('balance', '+', amount) }))
    .where('user_id', '=', userId)
    .execute()
  if (lineageId !== null) await addSpend(db, { lineageId, amount: -amount, at: createdAt })
  return true
}

/** Applies the entry even if the backup lacks the account: signing up again must not give a second credit. */
async function applyTrialCredit(db: Db, entry: EntryOf<'trial_credit'>): Promise<boolean> {
  await db
    .insertInto('trial_credits')
    .values({ address_hash: entry.address_hash, user_id: entry.user_id, claimed_at: entry.at })
    .onConflict(conflict => conflict.column('address_hash').doNothing())
    .execute()
  return true
}

async function applyAuthorization(db: Db, entry: EntryOf<'charge_authorization'>): Promise<boolean> {
  const { user_id, app_id, granted_at, revoked_at } = entry
  const app = await db.selectFrom('apps').select('id').where('id', '=', app_id).executeTakeFirst()
  if (!app || !(await hasUser(db, user_id))) return false
  await db
    .insertInto('charge_authorizations')
    .values({ user_id, app_id, granted_at, revoked_at })
    .onConflict(conflict => conflict.columns(['user_id', 'app_id']).doUpdateSet({ granted_at, revoked_at }))
    .execute()
  return true
}

async function applyConsent(db: Db, entry: EntryOf<'consent'>): Promise<boolean> {
  const { id, user_id, app_id, granted_at, revoked_at } = entry
  const app = await db.selectFrom('apps').select('id').where('id', '=', app_id).executeTakeFirst()
  if (!app || !(await hasUser(db, user_id))) return false
  const state = { id, scopes: JSON.stringify(entry.scopes), granted_at, revoked_at }
  await db
    .insertInto('consents')
    .values({ user_id, app_id, ...state })
    .onConflict(conflict => conflict.columns(['user_id', 'app_id']).doUpdateSet(state))
    .execute()
  return true
}

/** Sets the policies of the entry if they are newer than those of the backup, whether they allow more or less. */
async function applyPolicies(db: Db, { policies, changed_at }: EntryOf<'policies'>): Promise<boolean> {
  const store = createPolicyStore({ db })
  const storedPolicies = await store.lock()
  if (storedPolicies.changedAt < changed_at) await store.set(policies, changed_at)
  return true
}

async function hasUser(db: Db, id: string): Promise<boolean> {
  return (await db.selectFrom('users').select('id').where('id', '=', id).executeTakeFirst()) !== undefined
}
