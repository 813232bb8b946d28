import { AUDIT_TYPES, type AuditEvent } from '../audit/audit-event.ts'
import type { Instant } from '../clock.ts'
import type { Event, SubjectEvent } from '../events.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { type SecurityEventType, securityEvent } from '../security-events/security-event.ts'
import type { SecurityEventRows } from '../security-events/security-event-store.ts'
import type { AuditedTransaction, RecordedChanges, Store, WithChanges } from '../store.ts'
import type { WebhookEvent } from '../webhooks/webhook-event.ts'
import type { Ending } from './ending.ts'
import type { EndingRows } from './ending-store.ts'
import type { Fact } from './fact.ts'
import { FEED_WINDOW } from './revocation-feed.ts'
import { WEBHOOK_EVENTS } from './webhook-events.ts'

/** Maps each operation to a function that returns its facts, given its outcome and arguments; null if it has none. */
type FactsOf<Verbs> = {
  [Verb in keyof Verbs]: Verbs[Verb] extends (...args: infer Args) => Promise<infer Outcome>
    ? ((outcome: Outcome, ...args: Args) => readonly Fact[]) | null
    : never
}
export type FactTable = { [Noun in keyof RecordedChanges]: FactsOf<RecordedChanges[Noun]> }

const NOTHING: readonly Fact[] = []

/**
 * The facts of every operation that ends, grants or charges something. An operation that is missing here does not
 * compile, and transactions have these operations only with their facts (`withFacts`).
 */
export const FACTS: FactTable = {
  users: {
    insert: null,
    insertImported: null,
    rename: null,
    setLocale: null,
    setRole: user => (user ? [changed('user', user.id, user.id)] : NOTHING),
    suspend: (user, id, at) => (user ? ended('user', id, id, at, 'account_suspended') : NOTHING),
    activate: (user, id, at) =>
      user
        ? [changed('user', id, id), securityEventFact(securityEvent('account_activated', id, at, null))]
        : NOTHING,
    scheduleDeletion: (user, id, _deletesAt, { at, caller }) =>
      user ? accountChanged('account_deletion_requested', id, at, caller) : NOTHING,
    cancelDeletion: (user, id, { at, caller }) =>
      user ? accountChanged('account_deletion_cancelled', id, at, caller) : NOTHING,
    postponeDeletion: (user, id) => (user ? [changed('user', id, id)] : NOTHING),
    changeEmail: (user, id, _from, _to, { at, caller }) =>
      user ? accountChanged('email_changed', id, at, caller) : NOTHING,
    erase: (user, id, at) => (user ? ended('user', id, id, at, 'account_deleted') : NOTHING),
  },
  apiKeys: {
    insert: null,
    insertImported: null,
    update: (key, _userId, _id, { allowedNetworks }, now) =>
      key && allowedNetworks ? restricted(key, now) : NOTHING,
    revoke: (key, id, _revokedAt, { at, caller }) =>
      key ? ended('api_key', id, key.userId, at, 'api_key_revoked', caller) : NOTHING,
    // Runs only when the account is deleted. The keys have no security events of their own, since `account_deleted`,
    // which `users.erase` records in the same transaction, covers them.
    revokeAllOf: (ids, userId, at) => ids.flatMap(id => ended('api_key', id, userId, at, null)),
    replace(key, id, _successorId, expiresAt, now, caller) {
      if (!key) return NOTHING
      if (key.revokedAt !== null) return ended('api_key', id, key.userId, now, 'api_key_revoked', caller)
      return [
        ...restricted(key, now),
        ...(key.expiresAt === expiresAt ? futureEnding(key, expiresAt, now) : NOTHING),
      ]
    },
  },
  sessions: {
    insert: null,
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
    endSurplusOf: (ids, userId, _kept, _limit, { at, caller }) =>
      ids.flatMap(id => ended('session', id, userId, at, 'session_ended', caller)),
    endAllOfApp: (ids, userId, _appId, { at, caller }) =>
      ids.flatMap(id => ended('session', id, userId, at, 'session_ended', caller)),
    endAllOfSignIn: (sessions, _signInId, { at, caller }) =>
      sessions.flatMap(({ id, userId }) => ended('session', id, userId, at, 'session_ended', caller)),
    endSomeOfApp: (sessions, _appId, _limit, { at, caller }) =>
      sessions.flatMap(({ id, userId }) => ended('session', id, userId, at, 'session_ended', caller)),
  },
  securityEvents: {
    insert: (_, event) => [securityEventFact(event)],
  },
  magicLinks: {
    consume: (link, id, at) => (link ? [{ type: 'magic_link', id, at }] : NOTHING),
    consumeOthers: (ids, _email, _exceptId, at) => ids.map(id => ({ type: 'magic_link', id, at })),
    consumeAllOf: (ids, _email, at) => ids.map(id => ({ type: 'magic_link', id, at })),
  },
  billing: {
    post: entry => (entry ? [{ type: 'ledger', entry }] : NOTHING),
    charge: posted =>
      posted && typeof posted === 'object' ? [{ type: 'ledger', entry: posted.entry }] : NOTHING,
    claimTrialCredit: (isFirst, addressHash, userId, at) =>
      isFirst ? [{ type: 'trial_credit', addressHash, userId, at }] : NOTHING,
    // An authorisation that was active already keeps its earlier time and was recorded then.
    authorize: (authorization, _userId, _appId, at) =>
      authorization?.grantedAt === at ? [{ type: 'charge_authorization', authorization }] : NOTHING,
    withdraw: (authorization, _userId, _appId, at) =>
      authorization?.revokedAt === at ? [{ type: 'charge_authorization', authorization }] : NOTHING,
    withdrawSomeOfApp: withdrawn =>
      withdrawn.map(authorization => ({ type: 'charge_authorization', authorization })),
  },
  consents: {
    grant: consent => [{ type: 'consent', consent }],
    withdraw: consent => (consent ? [{ type: 'consent', consent }] : NOTHING),
    withdrawSomeOfApp: consents => consents.map(consent => ({ type: 'consent', consent })),
  },
  invitations: {
    insert: (replaced, { createdAt }) => replaced.map(id => ({ type: 'invitation', id, at: createdAt })),
    accept: (accepted, _email, _userId, at) =>
      accepted ? [{ type: 'invitation', id: accepted.id, at }] : NOTHING,
    revoke: (revoked, id, at) => (revoked ? [{ type: 'invitation', id, at }] : NOTHING),
  },
  policies: {
    set: stored => [{ type: 'policies', set: stored }],
  },
  presence: { record: null, deregister: null, prune: null },
  audit: {
    append: events => events.flatMap(event => [{ type: 'audit', event }, ...eventsForSubject(event)]),
  },
  apps: {
    addSecret: (_, id) => [{ type: 'app_secrets', id }],
    removeSecret: (removed, id) => (removed ? [{ type: 'app_secrets', id }] : NOTHING),
    dropSecrets: (dropped, id) => (dropped ? [{ type: 'app_secrets', id }] : NOTHING),
    remove: (removed, id) => (removed ? [{ type: 'app_secrets', id }] : NOTHING),
  },
  replay: {
    endKeyBy: (ends, key, expiresAt, now) =>
      ends ? [...restricted(key, now), ...futureEnding(key, expiresAt, now)] : NOTHING,
    replaceNetworks: (narrows, key, _from, _to, now) => (narrows ? restricted(key, now) : NOTHING),
    removeAppSecretsBesides: (removed, id) => (removed > 0 ? [{ type: 'app_secrets', id }] : NOTHING),
    withdrawAsOf: authorization =>
      authorization ? [{ type: 'charge_authorization', authorization }] : NOTHING,
    withdrawConsentAsOf: consent => (consent ? [{ type: 'consent', consent }] : NOTHING),
  },
}

/** A transaction as storage/ implements it: its operations write only their own rows. */
export type RowTransaction = WithChanges<Store> & {
  [Noun in keyof RecordedChanges]: RecordedChanges[Noun]
} & { endings: EndingRows; securityEvents: SecurityEventRows; publish(event: Event): void }

/** What a transaction collects besides its rows. */
interface CollectedFacts {
  facts: Fact[]
  /** The webhook events of the transaction, in the order of its operations. */
  announced: WebhookEvent[]
}

/** Wraps the operations of a transaction, so that each also records its facts and announces its webhook events. */
export function withFacts(rows: RowTransaction): AuditedTransaction & CollectedFacts {
  const collected: CollectedFacts = { facts: [], announced: [] }
  const nouns = Object.keys(FACTS) as (keyof RecordedChanges)[]
  const changes = nouns.map(noun => [noun, { ...rows[noun], ...recordingOperations(rows, noun, collected) }])
  return {
    ...rows,
    ...Object.fromEntries(changes),
    ...collected,
    announce: (...events: WebhookEvent[]) => void collected.announced.push(...events),
  }
}

type AnyOperation = (...args: unknown[]) => Promise<unknown>
type AnyFacts<What> = ((outcome: unknown, ...args: unknown[]) => readonly What[]) | null

/** Untyped, since both tables are checked where they are declared. */
function recordingOperations(
  rows: RowTransaction,
  noun: keyof RecordedChanges,
  { facts, announced }: CollectedFacts,
): { [name: string]: AnyOperation } {
  const operations = rows[noun] as unknown as { [name: string]: AnyOperation }
  const table = Object.entries(FACTS[noun]) as [string, AnyFacts<Fact>][]
  const events = WEBHOOK_EVENTS[noun] as unknown as { [name: string]: AnyFacts<WebhookEvent> }
  return Object.fromEntries(
    table.map(([name, factsOf]) => [
      name,
      async (...args: unknown[]) => {
        const outcome = await operations[name]!(...args)
        // Pushed one by one: the facts of a hundred thousand rows are too many arguments for one call.
        for (const event of events[name]?.(outcome, ...args) ?? []) announced.push(event)
        const newFacts = factsOf?.(outcome, ...args) ?? NOTHING
        for (const fact of newFacts) facts.push(fact)
        // The operation itself stores a security event as its row.
        if (noun !== 'securityEvents') await recordFacts(rows, newFacts)
        return outcome
      },
    ]),
  )
}

async function recordFacts(rows: RowTransaction, facts: readonly Fact[]): Promise<void> {
  const endings = facts.flatMap(fact => (fact.type === 'ending' ? [fact.ending] : []))
  if (endings.length > 0) await rows.endings.insert(endings)
  const sessions = endings.filter(({ kind }) => kind === 'session')
  if (sessions.length > 0) {
    const ids = sessions.map(({ subjectId }) => subjectId)
    const queued = await rows.logoutNotices.queue(ids, sessions[0]!.at)
    if (queued > 0) rows.publish({ type: 'logout_notice.queued' })
  }
  const events = facts.flatMap(fact => (fact.type === 'security_event' ? [fact.event] : []))
  if (events.length > 0) await rows.securityEvents.insertMany(events)
  for (const fact of facts)
    if (fact.type === 'changed') rows.publish(EVENT_OF_KIND[fact.kind](fact.id, fact.userId))
}

const EVENT_OF_KIND: Record<Ending['kind'], (id: string, userId: string) => SubjectEvent> = {
  api_key: (keyId, userId) => ({ type: 'api_key.changed', keyId, userId }),
  session: (sessionId, userId) => ({ type: 'session.ended', sessionId, userId }),
  user: userId => ({ type: 'user.changed', userId }),
}

/** The facts of an ending. @param type null if another security event of the same transaction covers the ending */
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
  return [
    ending(kind, id, userId, at),
    changed(kind, id, userId),
    ...(event ? [securityEventFact(event)] : []),
  ]
}

/** The facts of a change of the account that ends nothing. */
function accountChanged(type: SecurityEventType, id: string, at: Instant, caller: Caller | null): Fact[] {
  return [changed('user', id, id), securityEventFact(securityEvent(type, id, at, caller))]
}

/** Makes hubs reload the key's status: immediately by the event, and reliably by their sweep of endings. */
function restricted({ id, userId }: { id: string; userId: string }, now: Instant): Fact[] {
  return ended('api_key', id, userId, now, null)
}

/**
 * The ending of a rotated key at the end of its overlap, if that is so short that issued tokens may outlive it. Hubs
 * reload the key's status and so know its end; consumers of the revocation feed get this entry when the key ends.
 */
function futureEnding(
  { id, userId }: { id: string; userId: string },
  end: Instant,
  now: Instant,
): readonly Fact[] {
  return end < now + FEED_WINDOW ? [ending('api_key', id, userId, end)] : NOTHING
}

/** The id may be created inside the transaction, since it is not needed to read back the outcome. */
function ending(kind: Ending['kind'], subjectId: string, userId: string, at: Instant): Fact {
  return { type: 'ending', ending: { id: newId(at), kind, subjectId, userId, at } }
}

/** The person concerned learns what was done, but not by whom and from where. */
function eventsForSubject({ type, subject, at }: AuditEvent): Fact[] {
  const eventType = AUDIT_TYPES[type]
  if (eventType === null || subject.user_id === null) return []
  const about = subject.type === 'api_key' && subject.id !== null ? { keyId: subject.id } : {}
  return [securityEventFact(securityEvent(eventType, subject.user_id, at, null, about))]
}

function changed(kind: Ending['kind'], id: string, userId: string): Fact {
  return { type: 'changed', kind, id, userId }
}

function securityEventFact(event: ReturnType<typeof securityEvent>): Fact {
  return { type: 'security_event', event }
}
