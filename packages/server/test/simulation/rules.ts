import type { SimulatedDatabase } from './database.ts'

/** A change that no transaction may commit. */
interface Rule {
  table: string
  /** The condition on `old` and `new` under which the change is forbidden. */
  when: string
  message: string
}

/**
 * Endings are never undone, counters and times of use only grow, a key has one successor, and no balance is negative.
 */
const RULES: Rule[] = [
  setOnceRule('api_keys', 'revoked_at', 'the revocation of a key'),
  setOnceRule('magic_links', 'used_at', 'the use of a link'),
  setOnceRule('sessions', 'ended_at', 'the end of a session'),
  setOnceRule('sessions', 'ended_by', 'the cause of the end of a session'),
  {
    table: 'users',
    when: "old.status = 'deleted' and new.status <> 'deleted'",
    message: 'a deleted account came back',
  },
  {
    table: 'sessions',
    when: 'new.counter not in (old.counter, old.counter + 1)',
    message: 'the counter of a session went back or skipped a token',
  },
  {
    table: 'sessions',
    when: 'old.ended_at is not null and new.counter <> old.counter',
    message: 'a refresh token of an ended session was rotated',
  },
  {
    table: 'api_keys',
    when: 'old.replaced_by is not null and new.replaced_by is not old.replaced_by',
    message: 'a key got a second successor',
  },
  {
    table: 'api_keys',
    when: 'old.last_used_at is not null and coalesce(new.last_used_at, 0) < old.last_used_at',
    message: 'the last use of a key went back',
  },
  { table: 'balances', when: 'new.balance < 0', message: 'a balance is negative' },
]

function setOnceRule(table: string, column: string, what: string): Rule {
  return {
    table,
    when: `old.${column} is not null and new.${column} is not old.${column}`,
    message: `${what} was undone or changed`,
  }
}

/** Adds triggers by which a transaction remembers the rules that it breaks. */
export function watchRules(database: SimulatedDatabase): void {
  database.sqlite.function('rule_broken', { varargs: true }, (...message) => {
    database.noteBroken(message.join(' '))
    return null
  })
  for (const [at, { table, when, message }] of RULES.entries()) {
    database.sqlite.exec(
      `create temp trigger rule_${at} after update on main.${table} when ${when}
       begin select rule_broken('${message}', new.rowid); end`,
    )
  }
}
