import type { Clock } from '../clock.ts'
import type { Ending } from '../endings/ending.ts'
import type { Fact } from '../endings/fact.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store.ts'
import type { Journal } from './journal.ts'
import type { EntryOf, JournalEntry } from './journal-entry.ts'

/** Maximum number of facts of one transaction for which the database is read concurrently. */
const MAX_CONCURRENT_READS = 20

interface Deps {
  journal: Journal
  /** Read after the commit. The state may include later changes, which does no harm. */
  store: Store
  clock: Clock
  log: Log
}

/**
 * Writes the facts of a committed transaction to the journal. Never rejects, since the commit cannot be undone: if the
 * journal cannot be written, or the database cannot be read, an error is logged.
 */
export function createJournalWriter({ journal, store, clock, log }: Deps) {
  const entriesOf = createEntryReader(store, clock)

  /** Reads a few subjects at a time, so that a transaction that ended many does not use all database connections. */
  async function entriesOfAll(facts: readonly Fact[]): Promise<JournalEntry[]> {
    const entries: JournalEntry[][][] = []
    for (let start = 0; start < facts.length; start += MAX_CONCURRENT_READS)
      entries.push(await Promise.all(facts.slice(start, start + MAX_CONCURRENT_READS).map(entriesOf)))
    return entries.flat(2)
  }

  return async function write(facts: readonly Fact[]): Promise<void> {
    if (facts.length === 0) return
    try {
      await journal.append(await entriesOfAll(withoutRepeats(facts)))
    } catch (error) {
      log.error({ error: String(error) }, 'the journal cannot be written: a restore would lose this change')
    }
  }
}

/** Several changes of one subject need one entry only, since an entry has the subject's whole state. */
function withoutRepeats(facts: readonly Fact[]): Fact[] {
  const seenIds = new Set<string>()
  return facts.filter(fact => {
    if (fact.type !== 'changed' && fact.type !== 'app_secrets') return true
    const isNew = !seenIds.has(fact.id)
    seenIds.add(fact.id)
    return isNew
  })
}

/**
 * For each kind of subject, a function that reads its state as journal entries: one, or none if the subject does not
 * exist or is a session that has not ended. A missing kind does not compile.
 */
export type SubjectStates = { [Kind in Ending['kind']]: (id: string) => Promise<EntryOf<Kind>[]> }

function createEntryReader(store: Store, clock: Clock): (fact: Fact) => Promise<JournalEntry[]> {
  const states: SubjectStates = {
    async api_key(id) {
      const keys = await store.apiKeys.findMany([id])
      return keys.map(({ revokedAt, expiresAt, allowedNetworks }) => ({
        type: 'api_key',
        at: clock.now(),
        id,
        revoked_at: revokedAt,
        expires_at: expiresAt,
        allowed_networks: allowedNetworks,
      }))
    },
    async session(id) {
      const session = await store.sessions.find(id)
      if (!session?.endedAt || !session.endedBy) return []
      return [{ type: 'session', at: session.endedAt, id, ended_by: session.endedBy }]
    },
    async user(id) {
      const user = await store.users.find(id)
      if (!user) return []
      const { status, role, deletesAt } = user
      return [{ type: 'user', at: clock.now(), id, status, role, deletes_at: deletesAt }]
    },
  }

  return async fact => {
    switch (fact.type) {
      case 'changed':
        return states[fact.kind](fact.id)
      case 'app_secrets': {
        const secrets = await store.apps.datedSecrets(fact.id)
        const datedHashes = secrets.map(({ hash, createdAt }) => ({ hash, created_at: createdAt }))
        const removedAt = await store.apps.removedAt(fact.id)
        const optionalRemovedAt = removedAt === null ? {} : { removed_at: removedAt }
        return [
          { type: 'app_secrets', at: clock.now(), id: fact.id, secrets: datedHashes, ...optionalRemovedAt },
        ]
      }
      case 'magic_link':
      case 'invitation':
        return [fact]
      case 'ledger':
        return [{ ...fact, at: clock.now() }]
      case 'trial_credit':
        return [{ type: 'trial_credit', at: fact.at, address_hash: fact.addressHash, user_id: fact.userId }]
      case 'charge_authorization': {
        const { userId, appId, grantedAt, revokedAt } = fact.authorization
        return [
          {
            type: 'charge_authorization',
            at: clock.now(),
            user_id: userId,
            app_id: appId,
            granted_at: grantedAt,
            revoked_at: revokedAt,
          },
        ]
      }
      case 'consent': {
        const { id, userId, appId, scopes, grantedAt, revokedAt } = fact.consent
        return [
          {
            type: 'consent',
            at: clock.now(),
            id,
            user_id: userId,
            app_id: appId,
            scopes,
            granted_at: grantedAt,
            revoked_at: revokedAt,
          },
        ]
      }
      case 'policies': {
        const { policies, changedAt } = fact.set
        return [{ type: 'policies', at: clock.now(), policies, changed_at: changedAt }]
      }
      case 'ending':
      case 'security_event':
      case 'audit':
        return [] // endings come with a `changed` fact; security events and audit rows are not journaled
      default:
        return fact satisfies never
    }
  }
}
