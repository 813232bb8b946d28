import type { BillingStore } from '../billing/billing-store.ts'
import type { Clock, Instant } from '../clock.ts'
import type { Event } from '../events.ts'
import type { Log } from '../log.ts'
import type { MagicLinkStore } from '../magic-links/magic-link-store.ts'
import type { SessionEnd } from '../sessions/session.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { Storage, Store, Transaction } from '../store.ts'
import type { Journal } from './journal.ts'
import type { JournalEntry } from './journal-entry.ts'

/** What one run of a transaction did that the journal must hold. */
interface Noted {
  keyIds: Set<string>
  userIds: Set<string>
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
    return { keyIds: new Set(), userIds: new Set(), appIds: new Set(), entries: [] }
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
      sessions: notingSessions(tx.sessions, noted),
      magicLinks: notingLinks(tx.magicLinks, noted),
      publish(event: Event) {
        if (event.type === 'api_key.changed') noted.keyIds.add(event.keyId)
        if (event.type === 'user.changed') noted.userIds.add(event.userId)
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

  function notingSessions(sessions: SessionStore, { entries }: Noted): SessionStore {
    const note = (id: string, by: SessionEnd, at: Instant) =>
      entries.push({ type: 'session', at, id, ended_by: by })
    return {
      ...sessions,
      async end(id, by, at) {
        const ended = await sessions.end(id, by, at)
        if (ended) note(id, by, at)
        return ended
      },
      async endAllOf(userId, by, at, exceptId) {
        const ended = await sessions.endAllOf(userId, by, at, exceptId)
        for (const id of ended) note(id, by, at)
        return ended
      },
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

  /** The commit stands whatever becomes of this, so a journal that cannot be written is the operator's to hear of. */
  async function write(noted: Noted): Promise<void> {
    if (noted.keyIds.size + noted.userIds.size + noted.appIds.size + noted.entries.length === 0) return
    try {
      await journal.append([...noted.entries, ...(await standingsOf(noted))])
    } catch (error) {
      log.error({ error: String(error) }, 'the journal cannot be written: a restore would not know of this')
    }
  }

  /** As they are after the commit: a later change that is in there already harms nothing. */
  async function standingsOf({ keyIds, userIds, appIds }: Noted): Promise<JournalEntry[]> {
    const at = clock.now()
    const keys = keyIds.size > 0 ? await storage.store.apiKeys.findMany([...keyIds]) : []
    const users = await Promise.all([...userIds].map(id => storage.store.users.find(id)))
    const apps = await Promise.all(
      [...appIds].map(async (id): Promise<JournalEntry> => {
        const secrets = await storage.store.apps.datedSecrets(id)
        return { type: 'app_secrets', at, id, secrets: secrets.map(toDated) }
      }),
    )
    return [
      ...keys.map(
        ({ id, revokedAt, expiresAt, allowedNetworks }): JournalEntry => ({
          type: 'api_key',
          at,
          id,
          revoked_at: revokedAt,
          expires_at: expiresAt,
          allowed_networks: allowedNetworks,
        }),
      ),
      ...users.flatMap((user): JournalEntry[] =>
        user ? [{ type: 'user', at, id: user.id, status: user.status, role: user.role }] : [],
      ),
      ...apps,
    ]
  }
}

function toDated({ hash, createdAt }: { hash: string; createdAt: Instant }) {
  return { hash, created_at: createdAt }
}
