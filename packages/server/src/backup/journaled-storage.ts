import type { BillingStore } from '../billing/billing-store.ts'
import type { Clock, Instant } from '../clock.ts'
import type { Ending } from '../endings/ending.ts'
import type { Event } from '../events.ts'
import type { Log } from '../log.ts'
import type { MagicLinkStore } from '../magic-links/magic-link-store.ts'
import type { Storage, Store, Transaction } from '../store.ts'
import type { Journal } from './journal.ts'
import type { EntryOf, JournalEntry } from './journal-entry.ts'

/** What one run of a transaction did that the journal must hold. */
interface Noted {
  /** The subjects of its endings, by kind. */
  ended: Record<Ending['kind'], Set<string>>
  appIds: Set<string>
  entries: JournalEntry[]
}

/**
 * The same storage, which writes ends, grants and charges into the journal after their commit and before
 * anybody is told: what was answered is in it. The verbs know nothing of it.
 */
export function journaled<Base extends Storage>(
  storage: Base,
  deps: { journal: Journal; clock: Clock; log: Log },
): Base {
  const { journal, clock, log } = deps
  const states = readEndedStates(storage, clock)

  return {
    ...storage,
    async transaction<Outcome>(
      work: (tx: Transaction) => Promise<Outcome>,
      landed?: (store: Store) => Promise<Outcome | undefined>,
    ): Promise<Outcome> {
      let noted = nothing()
      const outcome = await storage.transaction(tx => {
        noted = nothing() // a transaction that is tried again begins anew
        return work(noting(tx, noted))
      }, landed)
      await write(noted)
      return outcome
    },
    async close() {
      await journal.close()
      await storage.close()
    },
  }

  function nothing(): Noted {
    return {
      ended: { api_key: new Set(), session: new Set(), user: new Set() },
      appIds: new Set(),
      entries: [],
    }
  }

  function noting(tx: Transaction, noted: Noted): Transaction {
    return {
      ...tx,
      apps: {
        ...tx.apps,
        async addSecret(appId, secretHash, at) {
          await tx.apps.addSecret(appId, secretHash, at)
          noted.appIds.add(appId)
        },
      },
      billing: notingBilling(tx.billing, noted),
      endings: {
        ...tx.endings,
        async insert(endings) {
          await tx.endings.insert(endings)
          for (const { kind, subjectId } of endings) noted.ended[kind].add(subjectId)
        },
      },
      magicLinks: notingLinks(tx.magicLinks, noted),
      publish(event: Event) {
        // Activations and roles are changes of an account and no endings.
        if (event.type === 'user.changed') noted.ended.user.add(event.userId)
        tx.publish(event)
      },
    }
  }

  function notingBilling(billing: BillingStore, { entries }: Noted): BillingStore {
    return {
      ...billing,
      async post(wanted) {
        const entry = await billing.post(wanted)
        if (entry) entries.push({ type: 'ledger', at: clock.now(), entry })
        return entry
      },
      async claimTrialCredit(addressHash, userId, at) {
        const isFirst = await billing.claimTrialCredit(addressHash, userId, at)
        if (isFirst) entries.push({ type: 'trial_credit', at, address_hash: addressHash, user_id: userId })
        return isFirst
      },
      authorize: (userId, appId, at) => noteAuthorization(billing.authorize(userId, appId, at)),
      withdraw: (userId, appId, at) => noteAuthorization(billing.withdraw(userId, appId, at)),
    }

    async function noteAuthorization(changing: ReturnType<BillingStore['authorize']>) {
      const authorization = await changing
      if (authorization) {
        const { userId, appId, grantedAt, revokedAt } = authorization
        entries.push({
          type: 'charge_authorization',
          at: clock.now(),
          user_id: userId,
          app_id: appId,
          granted_at: grantedAt,
          revoked_at: revokedAt,
        })
      }
      return authorization
    }
  }

  function notingLinks(links: MagicLinkStore, { entries }: Noted): MagicLinkStore {
    return {
      ...links,
      async consume(id, at) {
        const link = await links.consume(id, at)
        if (link) entries.push({ type: 'magic_link', at, id })
        return link
      },
      consumeOthers: (email, exceptId, at) => noteAll(links.consumeOthers(email, exceptId, at), at),
      consumeAllOf: (email, at) => noteAll(links.consumeAllOf(email, at), at),
    }

    async function noteAll(consuming: Promise<string[]>, at: Instant): Promise<string[]> {
      const ids = await consuming
      for (const id of ids) entries.push({ type: 'magic_link', at, id })
      return ids
    }
  }

  /** The commit is durable whatever becomes of this, so a journal that cannot be written is reported to the operator. */
  async function write(noted: Noted): Promise<void> {
    try {
      await journal.append([...noted.entries, ...(await endedStates(noted)), ...(await appSecrets(noted))])
    } catch (error) {
      log.error({ error: String(error) }, 'the journal cannot be written: a restore would not know of this')
    }
  }

  async function endedStates({ ended }: Noted): Promise<JournalEntry[]> {
    const kinds = Object.keys(states) as Ending['kind'][]
    const some = kinds.filter(kind => ended[kind].size > 0)
    return (await Promise.all(some.map(kind => states[kind]([...ended[kind]])))).flat()
  }

  async function appSecrets({ appIds }: Noted): Promise<JournalEntry[]> {
    const at = clock.now()
    return Promise.all(
      [...appIds].map(async (id): Promise<JournalEntry> => {
        const secrets = await storage.store.apps.datedSecrets(id)
        return { type: 'app_secrets', at, id, secrets: secrets.map(toDated) }
      }),
    )
  }
}

function toDated({ hash, createdAt }: { hash: string; createdAt: Instant }) {
  return { hash, created_at: createdAt }
}

/**
 * What the journal holds of each kind of ending: the state of its subjects, read after the commit, since a later
 * change that it has already harms nothing. A new kind of ending does not compile before it is here.
 */
export type EndedStates = {
  [Kind in Ending['kind']]: (ids: readonly string[]) => Promise<EntryOf<Kind>[]>
}

function readEndedStates({ store }: Storage, clock: Clock): EndedStates {
  return {
    async api_key(ids) {
      const at = clock.now()
      return (await store.apiKeys.findMany(ids)).map(({ id, revokedAt, expiresAt, allowedNetworks }) => ({
        type: 'api_key',
        at,
        id,
        revoked_at: revokedAt,
        expires_at: expiresAt,
        allowed_networks: allowedNetworks,
      }))
    },
    async session(ids) {
      const sessions = await Promise.all(ids.map(id => store.sessions.find(id)))
      return sessions.flatMap(session =>
        session?.endedAt && session.endedBy
          ? [{ type: 'session', at: session.endedAt, id: session.id, ended_by: session.endedBy }]
          : [],
      )
    },
    async user(ids) {
      const at = clock.now()
      const users = await Promise.all(ids.map(id => store.users.find(id)))
      return users.flatMap(user =>
        user ? [{ type: 'user', at, id: user.id, status: user.status, role: user.role }] : [],
      )
    },
  }
}
