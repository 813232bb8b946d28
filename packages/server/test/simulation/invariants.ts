import type { AgentConnection } from '../../src/hub/agent-connection.ts'
import type { SimulatedTransaction } from './database.ts'
import type { World } from './world.ts'

/** How long a connection may outlive its key if an event is lost, or the node is cut off from the database. */
const REVOCATION_BOUND_MS = 15_000
/** The bound for runs in which nothing is lost or slow: events arrive before the next sweep of the database. */
const CALM_REVOCATION_BOUND_MS = 250
const MINUTE_MS = 60_000
/** Longer than a transaction without faults takes, and shorter than the time without faults at the end of a run. */
const TRANSACTION_BOUND_MS = 10_000
const READY_STATE_OPEN = 1

/** What must hold for the database and the connections at any time. */
export class Invariants {
  readonly #world: World
  /** For each ended key, the time at which a check first found that it had ended. */
  readonly #endedAt = new Map<string, number>()
  /** The keys that the last check found revoked, or whose owner was not active. */
  #lastRevokedIds = new Set<string>()

  constructor(world: World) {
    this.#world = world
  }

  /** Checks what a transaction changed. */
  committed({ locks }: SimulatedTransaction): void {
    const tables = new Set([...locks].map(key => key.slice(0, key.indexOf('/'))))
    if (tables.has('api_keys')) this.#checkKeys()
    if (this.#world.isCalm && (tables.has('api_keys') || tables.has('users'))) this.#watchRevocations()
    if (tables.has('balances') || tables.has('ledger_entries')) this.#checkBalances()
    if (tables.has('magic_links')) this.#checkSends()
    if (tables.has('users') || tables.has('trial_credits')) this.#checkAccounts()
  }

  /** Checks what the passage of time may violate, without a commit. */
  checkDeadlines(): void {
    this.#noteEndedKeys()
    this.#checkConnections()
  }

  /** Checks what must hold once all faults are over. */
  checkAtRest(): void {
    const { server } = this.#world
    const queuedMails = this.#rows(
      'select id from messages where state = ? and created_at < ?',
      'queued',
      server.time - MINUTE_MS,
    )
    if (queuedMails.length > 0) this.#world.violate(`${queuedMails.length} mails were never delivered`)
    if (server.database.isLockedSince(this.#world.now - TRANSACTION_BOUND_MS))
      this.#world.violate('a transaction never ended')
  }

  /** Checks that no person exceeds the limit of active keys, except by one key that a rotation has replaced. */
  #checkKeys(): void {
    const { config, server } = this.#world
    const peopleOverLimit = this.#rows(
      `select user_id, count(*) as keys, count(replaced_by) as replaced from api_keys
       where revoked_at is null and (expires_at is null or expires_at > ?)
       group by user_id having count(*) > ?`,
      Math.ceil(server.time) + 1000,
      config.maxActiveKeys,
    )
    for (const { user_id: id, keys, replaced } of peopleOverLimit)
      if (Number(keys) > config.maxActiveKeys + 1 || replaced === 0)
        this.#world.violate(`${keys} keys of ${id} are active, of at most ${config.maxActiveKeys}`)
  }

  #checkBalances(): void {
    const wrongBalances = this.#rows(
      `select user_id, balance from balances where balance <>
       (select coalesce(sum(amount), 0) from ledger_entries l where l.user_id = balances.user_id)`,
    )
    for (const { user_id: id, balance } of wrongBalances)
      this.#world.violate(`the balance ${balance} of ${id} is not the sum of the ledger`)
  }

  /** Checks that no minute has more accepted sign-in mails to one address than the limit. */
  #checkSends(): void {
    const { limit } = this.#world.config.magicLinkLimits[0]!
    const rows = this.#rows('select email, created_at as at from magic_links order by email, created_at')
    for (const [at, row] of rows.entries()) {
      const first = rows[at - limit]
      if (first?.email === row.email && Number(row.at) - Number(first!.at) < MINUTE_MS)
        this.#world.violate(`${limit + 1} mails to ${row.email} were accepted in a minute`)
    }
  }

  #checkAccounts(): void {
    const [counts] = this.#rows(
      `select (select count(*) from users) as users, (select count(*) from trial_credits) as credits,
       (select count(*) from subscriptions) as plans, (select count(distinct email) from users) as addresses`,
    )
    const { users, credits, plans, addresses } = counts!
    if (credits !== users || plans !== users || addresses !== users)
      this.#world.violate(`${users} accounts, ${addresses} addresses, ${credits} credits, ${plans} plans`)
  }

  #noteEndedKeys(): void {
    const endedRows = this.#rows(
      `select k.id from api_keys k join users u on u.id = k.user_id
       where k.revoked_at is not null or k.expires_at <= ? or u.status <> 'active'`,
      Math.floor(this.#world.server.time),
    )
    const ids = new Set(endedRows.map(({ id }) => String(id)))
    for (const id of this.#endedAt.keys()) if (!ids.has(id)) this.#endedAt.delete(id)
    for (const id of ids) if (!this.#endedAt.has(id)) this.#endedAt.set(id, this.#world.now)
  }

  /** Checks the connections of keys that were just revoked, once all nodes must have received the event. */
  #watchRevocations(): void {
    const revokedIds = this.#revokedKeys()
    const newlyRevokedIds = [...revokedIds].filter(id => !this.#lastRevokedIds.has(id))
    this.#lastRevokedIds = revokedIds
    if (newlyRevokedIds.length > 0)
      this.#world.later(CALM_REVOCATION_BOUND_MS, () => this.#checkRevoked(newlyRevokedIds))
  }

  #checkRevoked(ids: string[]): void {
    // An account that was suspended may be active again, and its keys usable.
    const revokedIds = this.#revokedKeys()
    for (const { lines, isDraining, name } of this.#world.nodes) {
      if (isDraining) continue
      for (const { server } of lines) {
        const connection = server.connection as AgentConnection | null
        if (connection?.state !== 'open' || server.readyState !== READY_STATE_OPEN) continue
        const { keyId } = connection
        if (ids.includes(keyId) && revokedIds.has(keyId))
          this.#world.violate(
            `${name}: a connection of ${keyId} was open ${CALM_REVOCATION_BOUND_MS} ms after its end`,
          )
      }
    }
  }

  #revokedKeys(): Set<string> {
    const rows = this.#rows(
      "select k.id from api_keys k join users u on u.id = k.user_id where k.revoked_at is not null or u.status <> 'active'",
    )
    return new Set(rows.map(({ id }) => String(id)))
  }

  #checkConnections(): void {
    const { nodes, now } = this.#world
    for (const { lines, calmSince, taskMs, name } of nodes) {
      if (now - calmSince < REVOCATION_BOUND_MS || taskMs > 0) continue
      for (const line of lines) {
        const { server } = line
        const connection = server.connection as AgentConnection | null
        if (server.readyState !== READY_STATE_OPEN) lines.delete(line)
        else if (
          connection?.state === 'open' &&
          now - (this.#endedAt.get(connection.keyId) ?? now) > REVOCATION_BOUND_MS
        )
          this.#world.violate(`${name} keeps a connection of key ${connection.keyId}, which has ended`)
      }
    }
  }

  #rows(sql: string, ...parameters: (string | number)[]) {
    return this.#world.server.database.read(sql, ...parameters)
  }
}
