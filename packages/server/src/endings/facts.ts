import type { Instant } from '../clock.ts'
import type { Event, SubjectEvent } from '../events.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { type SecurityEventType, securityEvent } from '../security-events/security-event.ts'
import type { Changes, Store, Transaction, WithChanges } from '../store.ts'
import type { Ending } from './ending.ts'
import type { EndingRows } from './ending-store.ts'
import type { Fact } from './fact.ts'
import { FEED_WINDOW } from './revocation-feed.ts'

/** From the outcome and the arguments of each verb what it did. */
type FactsOf<Verbs> = {
  [Verb in keyof Verbs]: Verbs[Verb] extends (...args: infer Args) => Promise<infer Outcome>
    ? (outcome: Outcome, ...args: Args) => readonly Fact[]
    : never
}
export type FactTable = { [Noun in keyof Changes]: FactsOf<Changes[Noun]> }

const NOTHING: readonly Fact[] = []

/**
 * What every verb that ends, grants or charges leaves behind besides its own rows. A verb that is missing here does not
 * compile, and a transaction offers none of them without this.
 */
export const FACTS: FactTable = {
  users: {
    setRole: user => (user ? [changed('user', user.id, user.id)] : NOTHING),
    suspend: (user, id, at) => (user ? ended('user', id, id, at, 'account_suspended') : NOTHING),
    activate: (user, id, at) =>
      user ? [changed('user', id, id), told(securityEvent('account_activated', id, at, null))] : NOTHING,
    erase: (user, id, at) => (user ? ended('user', id, id, at, 'account_deleted') : NOTHING),
  },
  apiKeys: {
    update: (key, _userId, _id, { allowedNetworks }, now) =>
      key && allowedNetworks ? stricter(key, now) : NOTHING,
    revoke: (key, id, _revokedAt, { at, caller }) =>
      key ? ended('api_key', id, key.userId, at, 'api_key_revoked', caller) : NOTHING,
    // Their account's own event tells of these.
    revokeAllOf: (ids, userId, at) => ids.flatMap(id => ended('api_key', id, userId, at, null)),
    replace(key, id, _successorId, expiresAt, now, caller) {
      if (!key) return NOTHING
      if (key.revokedAt !== null) return ended('api_key', id, key.userId, now, 'api_key_revoked', caller)
      return [...stricter(key, now), ...(key.expiresAt === expiresAt ? endsAt(key, expiresAt, now) : NOTHING)]
    },
  },
  sessions: {
    end: (session, id, cause, _endedAt, { at, caller }) =>
      session
        ? ended(
            'session',
            id,
            session.userId,
            at,
            cause === 'reuse' ? 'refresh_token_reused' : 'session_ended',
            caller,
          )
        : NOTHING,
    endAllOf: (ids, userId, cause, _exceptId, { at, caller }) =>
      ids.flatMap(id =>
        ended('session', id, userId, at, cause === 'revoked' ? 'session_ended' : null, caller),
      ),
  },
  securityEvents: {
    insert: (_, event) => [told(event)],
  },
  magicLinks: {
    consume: (link, id, at) => (link ? [{ type: 'magic_link', id, at }] : NOTHING),
    consumeOthers: (ids, _email, _exceptId, at) => ids.map(id => ({ type: 'magic_link', id, at })),
    consumeAllOf: (ids, _email, at) => ids.map(id => ({ type: 'magic_link', id, at })),
  },
  billing: {
    post: entry => (entry ? [{ type: 'ledger', entry }] : NOTHING),
    claimTrialCredit: (isFirst, addressHash, userId, at) =>
      isFirst ? [{ type: 'trial_credit', addressHash, userId, at }] : NOTHING,
    // What was in force already has an instant of its own, and was recorded then.
    authorize: (authorization, _userId, _appId, at) =>
      authorization?.grantedAt === at ? [{ type: 'charge_authorization', authorization }] : NOTHING,
    withdraw: (authorization, _userId, _appId, at) =>
      authorization?.revokedAt === at ? [{ type: 'charge_authorization', authorization }] : NOTHING,
  },
  apps: {
    addSecret: (_, id) => [{ type: 'app_secrets', id }],
  },
  replay: {
    endKeyBy: (ends, key, expiresAt, now) =>
      ends ? [...stricter(key, now), ...endsAt(key, expiresAt, now)] : NOTHING,
    replaceNetworks: (narrows, key, _from, _to, now) => (narrows ? stricter(key, now) : NOTHING),
    removeAppSecretsBesides: (removed, id) => (removed > 0 ? [{ type: 'app_secrets', id }] : NOTHING),
    withdrawAsOf: authorization =>
      authorization ? [{ type: 'charge_authorization', authorization }] : NOTHING,
  },
}

/** What storage/ makes of one transaction: rows, and nothing besides. */
export type RowTransaction = WithChanges<Store> & { endings: EndingRows; publish(event: Event): void }

/** The same transaction, whose changes write their facts with their rows. */
export function withFacts(rows: RowTransaction): Transaction {
  const facts: Fact[] = []
  const nouns = Object.keys(FACTS) as (keyof Changes)[]
  const changes = nouns.map(noun => [noun, { ...rows[noun], ...recording(rows, noun, facts) }])
  return { ...rows, ...Object.fromEntries(changes), facts }
}

type AnyVerb = (...args: unknown[]) => Promise<unknown>
type AnyFacts = (outcome: unknown, ...args: unknown[]) => readonly Fact[]

/** The types of verbs and facts are checked where `FACTS` is declared; here any verb is like another. */
function recording(rows: RowTransaction, noun: keyof Changes, facts: Fact[]): Record<string, AnyVerb> {
  const verbs = rows[noun] as unknown as Record<string, AnyVerb>
  const table = Object.entries(FACTS[noun]) as [string, AnyFacts][]
  return Object.fromEntries(
    table.map(([name, factsOf]) => [
      name,
      async (...args: unknown[]) => {
        const outcome = await verbs[name]!(...args)
        const done = factsOf(outcome, ...args)
        facts.push(...done)
        // An event that a noun tells by itself is its own row.
        if (noun !== 'securityEvents') await write(rows, done)
        return outcome
      },
    ]),
  )
}

async function write(rows: RowTransaction, facts: readonly Fact[]): Promise<void> {
  const endings = facts.flatMap(fact => (fact.type === 'ending' ? [fact.ending] : []))
  if (endings.length > 0) await rows.endings.insert(endings)
  for (const fact of facts) {
    if (fact.type === 'security_event') await rows.securityEvents.insert(fact.event)
    if (fact.type === 'changed') rows.publish(EVENTS[fact.kind](fact.id, fact.userId))
  }
}

const EVENTS: Record<Ending['kind'], (id: string, userId: string) => SubjectEvent> = {
  api_key: (keyId, userId) => ({ type: 'api_key.changed', keyId, userId }),
  session: (sessionId, userId) => ({ type: 'session.ended', sessionId, userId }),
  user: userId => ({ type: 'user.changed', userId }),
}

/** @param type null where another event of the same transaction tells the owner */
function ended(
  kind: Ending['kind'],
  id: string,
  userId: string,
  at: Instant,
  type: SecurityEventType | null,
  caller: Caller | null = null,
): Fact[] {
  const about = kind === 'api_key' ? { keyId: id } : kind === 'session' ? { sessionId: id } : {}
  const event = type && securityEvent(type, userId, at, caller, about)
  return [ending(kind, id, userId, at), changed(kind, id, userId), ...(event ? [told(event)] : [])]
}

/** Hubs ask about the key anew: now by the event, and for certain by their sweep of the endings. */
function stricter({ id, userId }: { id: string; userId: string }, now: Instant): Fact[] {
  return ended('api_key', id, userId, now, null)
}

/**
 * Tokens that were issued before may outlive a short overlap. Hubs here ask about the key anew and know its end; those
 * that follow the feed read of it when it comes.
 */
function endsAt({ id, userId }: { id: string; userId: string }, end: Instant, now: Instant): readonly Fact[] {
  return end < now + FEED_WINDOW ? [ending('api_key', id, userId, end)] : NOTHING
}

/** Nothing is read back by these ids, and an undone run leaves none behind, so they are made in the transaction. */
function ending(kind: Ending['kind'], subjectId: string, userId: string, at: Instant): Fact {
  return { type: 'ending', ending: { id: newId(at), kind, subjectId, userId, at } }
}

function changed(kind: Ending['kind'], id: string, userId: string): Fact {
  return { type: 'changed', kind, id, userId }
}

function told(event: ReturnType<typeof securityEvent>): Fact {
  return { type: 'security_event', event }
}
