import type { Clock } from '../clock.ts'
import type { Ending } from '../endings/ending.ts'
import type { Fact } from '../endings/fact.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store.ts'
import type { Journal } from './journal.ts'
import type { EntryOf, JournalEntry } from './journal-entry.ts'

interface Deps {
  journal: Journal
  /** Read after the commit, so that a later change that it has already harms nothing. */
  store: Store
  clock: Clock
  log: Log
}

/**
 * Writes the facts of a durable transaction into the journal. Never throws: the commit stands whatever becomes of this,
 * so a journal that cannot be written, or a database that fails in between, is an error in the log (decision 8).
 */
export function createJournalWriter({ journal, store, clock, log }: Deps) {
  const entriesOf = createEntries(store, clock)

  return async function write(facts: readonly Fact[]): Promise<void> {
    if (facts.length === 0) return
    try {
      const entries = await Promise.all(withoutRepeats(facts).map(entriesOf))
      await journal.append(entries.flat())
    } catch (error) {
      log.error({ error: String(error) }, 'the journal cannot be written: a restore would not know of this')
    }
  }
}

/** A key whose networks and expiry both changed, or a session named twice, is one state to write. */
function withoutRepeats(facts: readonly Fact[]): Fact[] {
  const seen = new Set<string>()
  return facts.filter(fact => {
    if (fact.type !== 'changed' && fact.type !== 'app_secrets') return true
    const isNew = !seen.has(fact.id)
    seen.add(fact.id)
    return isNew
  })
}

/** What the journal holds of each kind of subject: its state. A new kind does not compile before it is here. */
export type SubjectStates = { [Kind in Ending['kind']]: (id: string) => Promise<EntryOf<Kind>[]> }

function createEntries(store: Store, clock: Clock): (fact: Fact) => Promise<JournalEntry[]> {
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
      return user ? [{ type: 'user', at: clock.now(), id, status: user.status, role: user.role }] : []
    },
  }

  return async fact => {
    switch (fact.type) {
      case 'changed':
        return states[fact.kind](fact.id)
      case 'app_secrets': {
        const secrets = await store.apps.datedSecrets(fact.id)
        const dated = secrets.map(({ hash, createdAt }) => ({ hash, created_at: createdAt }))
        return [{ type: 'app_secrets', at: clock.now(), id: fact.id, secrets: dated }]
      }
      case 'magic_link':
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
      case 'ending':
      case 'security_event':
        return [] // of an ending the subject's state is there; events are for reading only
      default:
        return fact satisfies never
    }
  }
}
