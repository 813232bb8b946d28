import type { createStorage } from '../../src/storage/database.ts'

/**
 * Queries for violations of what must always hold: an address has one account, an account has each of its parts once, the
 * ledger is consistent, each session has a user, and no two links have the same token.
 */
const BREACH_QUERIES: Record<string, string> = {
  'an address has two accounts':
    'select email from users where email is not null group by email having count(*) > 1',
  'an account without exactly one trial credit': `select u.id from users u left join ledger_entries l
    on l.user_id = u.id and l.kind = 'trial_credit' group by u.id having count(l.id) <> 1`,
  'an account without a subscription':
    'select id from users where id not in (select user_id from subscriptions)',
  'an account without exactly two authorisations': `select u.id from users u left join charge_authorizations c
    on c.user_id = u.id and c.app_id in ('console', 'hub') group by u.id having count(c.app_id) <> 2`,
  'a balance that is not the sum of its ledger': `select b.user_id from balances b
    left join ledger_entries l on l.user_id = b.user_id group by b.user_id, b.balance
    having b.balance <> coalesce(sum(l.amount), 0)`,
  'two entries of one cause': 'select cause from ledger_entries group by cause having count(*) > 1',
  'a session without a user': 'select id from sessions where user_id not in (select id from users)',
  'two links with one token': 'select token_hash from magic_links group by token_hash having count(*) > 1',
}

export async function checkAccounts(storage: Awaited<ReturnType<typeof createStorage>>): Promise<string[]> {
  const violations: string[] = []
  for (const [breach, query] of Object.entries(BREACH_QUERIES)) {
    const { rows } = await storage.engine.connection.execute(query, [])
    if (rows.length > 0) violations.push(`${breach} (${rows.length})`)
  }
  return violations
}
