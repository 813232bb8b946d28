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
type FactsOf<Operations> = {
  [Operation in keyof Operations]: Operations[Operation] extends (
    ...args: infer Args
  ) => Promise<infer Outcome>
    ? ((outcome: Outcome, ...args: Args) => readonly Fact[]) | null
    : never
}
export type FactTable = { [Noun in keyof RecordedChanges]: FactsOf<RecordedChanges[Noun]> }

const NO_FACTS: readonly Fact[] = []

/**
 * The facts of every operation of `RecordedChanges`; null if an operation has none. The table compiles only if no
 * operation is missing, and transactions offer these operations only wrapped by `withFacts`, which records the facts.
 */
export const FACTS: FactTable = {
  users: {
    insert: null,
    insertImported: null,
    rename: null,
    setLocale: null,
    setRole: user => (user ? [changedFact('user', user.id, user.id)] : NO_FACTS),
    suspend: (user, id, at) => (user ? endingFacts('user', id, id, at, 'account_suspended') : NO_FACTS),
    activate: (user, id, at) =>
      user
        ? [changedFact('user', id, id), securityEventFact(securityEvent('account_activated', id, at, null))]
        : NO_FACTS,
    scheduleDeletion: (user, id, _deletesAt, { at, caller }) =>
      user ? accountChangeFacts('account_deletion_requested', id, at, caller) : NO_FACTS,
    cancelDeletion: (user, id, { at, caller }) =>
      user ? accountChangeFacts('account_deletion_cancelled', id, at, caller) : NO_FACTS,
    postponeDeletion: (user, id) => (user ? [changedFact('user', id, id)] : NO_FACTS),
    changeEmail: (user, id, _from, _to, { at, caller }) =>
      user ? accountChangeFacts('email_changed', id, at, caller) : NO_FACTS,
    erase: (user, id, at) => (user ? endingFacts('user', id, id, at, 'account_deleted') : NO_FACTS),
  },
  apiKeys: {
    insert: null,
    insertImported: null,
    update: (key, _userId, _id, { allowedNetworks }, now) =>
      key && allowedNetworks ? restrictionFacts(key, now) : NO_FACTS,
    revoke: (key, id, _revokedAt, { at, caller }) =>
      key ? endingFacts('api_key', id, key.userId, at, 'api_key_revoked', caller) : NO_FACTS,
    // Runs only when the account is deleted. The keys have no security events of their own, since `account_deleted`,
    // which `users.erase` records in the same transaction, covers them.
    revokeAllOf: (ids, userId, at) => ids.flatMap(id => endingFacts('api_key', id, userId, at, null)),
    replace(key, id, _successorId, expiresAt, now, caller) {
      if (!key) return NO_FACTS
      if (key.revokedAt !== null)
        return endingFacts('api_key', id, key.userId, now, 'api_key_revoked', caller)
      return [
        ...restrictionFacts(key, now),
        ...(key.expiresAt === expiresAt ? futureEndingFacts(key, expiresAt, now) : NO_FACTS),
      ]
    },
  },
  sessions: {
    insert: null,
    end: (session, id, cause, _endedAt, { at, caller }) =>
      session
        ? endingFacts(
            'session',
            id,
            session.userId,
            at,
            cause === 'reuse' ? 'refresh_token_reused' : 'session_ended',
            caller,
          )
        : NO_FACTS,
    endAllOf: (ids, userId, cause, _exceptId, { at, caller }) =>
      ids.flatMap(id =>
        endingFacts('session', id, userId, at, cause === 'revoked' ? 'session_ended' : null, caller),
      ),
    endSurplusOf: (ids, userId, _kept, _limit, { at, caller }) =>
      ids.flatMap(id => endingFacts('session', id, userId, at, 'session_ended', caller)),
    endAllOfApp: (ids, userId, _appId, { at, caller }) =>
      ids.flatMap(id => endingFacts('session', id, userId, at, 'session_ended', caller)),
    endAllOfSignIn: (sessions, _signInId, { at, caller }) =>
      sessions.flatMap(({ id, userId }) => endingFacts('session', id, userId, at, 'session_ended', caller)),
    endSomeOfApp: (sessions, _appId, _limit, { at, caller }) =>
      sessions.flatMap(({ id, userId }) => endingFacts('session', id, userId, at, 'session_ended', caller)),
  },
  securityEvents: {
    insert: (_, event) => [securityEventFact(event)],
  },
  magicLinks: {
    consume: (link, id, at) => (link ? [{ type: 'magic_link', id, at }] : NO_FACTS),
    consumeOthers: (ids, _email, _exceptId, at) => ids.map(id => ({ type: 'magic_link', id, at })),
    consumeAllOf: (ids, _email, at) => ids.map(id => ({ type: 'magic_link', id, at })),
  },
  billing: {
    post: entry => (entry ? [{ type: 'ledger', entry }] : NO_FACTS),
    charge: posted =>
      posted && typeof posted === 'object' ? [{ type: 'ledger', entry: posted.entry }] : NO_FACTS,
    claimTrialCredit: (isFirst, addressHash, userId, at) =>
      isFirst ? [{ type: 'trial_credit', addressHash, userId, at }] : NO_FACTS,
    // An authorisation that was active already keeps its earlier time and was recorded then.
    authorize: (authorization, _userId, _appId, at) =>
      authorization?.grantedAt === at ? [{ type: 'charge_authorization', authorization }] : NO_FACTS,
    withdraw: (authorization, _userId, _appId, at) =>
      authorization?.revokedAt === at ? [{ type: 'charge_authorization', authorization }] : NO_FACTS,
    withdrawSomeOfApp: withdrawn =>
      withdrawn.map(authorization => ({ type: 'charge_authorization', authorization })),
  },
  consents: {
    grant: consent => [{ type: 'consent', consent }],
    withdraw: consent => (consent ? [{ type: 'consent', consent }] : NO_FACTS),
    withdrawSomeOfApp: consents => consents.map(consent => ({ type: 'consent', consent })),
  },
  invitations: {
    insert: (replaced, { createdAt }) => replaced.map(id => ({ type: 'invitation', id, at: createdAt })),
    accept: (accepted, _email, _userId, at) =>
      accepted ? [{ type: 'invitation', id: accepted.id, at }] : NO_FACTS,
    revoke: (revoked, id, at) => (revoked ? [{ type: 'invitation', id, at }] : NO_FACTS),
  },
  policies: {
    set: stored => [{ type: 'policies', set: stored }],
  },
  presence: { record: null, deregister: null, prune: null },
  audit: {
    append: events => events.flatMap(event => [{ type: 'audit', event }, ...subjectEventFacts(event)]),
  },
  apps: {
    addSecret: (_, id) => [{ type: 'app_secrets', id }],
    removeSecret: (removed, id) => (removed ? [{ type: 'app_secrets', id }] : NO_FACTS),
    dropSecrets: (dropped, id) => (dropped ? [{ type: 'app_secrets', id }] : NO_FACTS),
    remove: (removed, id) => (removed ? [{ type: 'app_secrets', id }] : NO_FACTS),
  },
  replay: {
    endKeyBy: (ends, key, expiresAt, now) =>
      ends ? [...restrictionFacts(key, now), ...futureEndingFacts(key, expiresAt, now)] : NO_FACTS,
    replaceNetworks: (narrows, key, _from, _to, now) => (narrows ? restrictionFacts(key, now) : NO_FACTS),
    removeAppSecretsBesides: (removed, id) => (removed > 0 ? [{ type: 'app_secrets', id }] : NO_FACTS),
    withdrawAsOf: authorization =>
      authorization ? [{ type: 'charge_authorization', authorization }] : NO_FACTS,
    withdrawConsentAsOf: consent => (consent ? [{ type: 'consent', consent }] : NO_FACTS),
  },
}

/** A transaction as storage/ implements it: its operations write their rows, but record no facts (`withFacts`). */
export type RowTransaction = WithChanges<Store> & {
  [Noun in keyof RecordedChanges]: RecordedChanges[Noun]
} & { endings: EndingRows; securityEvents: SecurityEventRows; publish(event: Event): void }

/** What `withFacts` collects while a transaction runs. */
interface CollectedFacts {
  facts: Fact[]
  /** The webhook events of the transaction, in the order of its operations. */
  announced: WebhookEvent[]
}

/** Wraps the operations of a transaction, so that each also records its facts and announces its webhook events. */
export function withFacts(rows: RowTransaction): AuditedTransaction & CollectedFacts {
  const collected: CollectedFacts = { facts: [], announced: [] }
  const nouns = Object.keys(FACTS) as (keyof RecordedChanges)[]
  const entries = nouns.map(noun => [noun, { ...rows[noun], ...wrapOperations(rows, noun, collected) }])
  return {
    ...rows,
    ...Object.fromEntries(entries),
    ...collected,
    announce: (...events: WebhookEvent[]) => void collected.announced.push(...events),
  }
}

type AnyOperation = (...args: unknown[]) => Promise<unknown>
type AnyFacts<Item> = ((outcome: unknown, ...args: unknown[]) => readonly Item[]) | null

/** Wraps the operations of one noun for `withFacts`. Untyped, since `FACTS` and `WEBHOOK_EVENTS` are typed already. */
function wrapOperations(
  rows: RowTransaction,
  noun: keyof RecordedChanges,
  { facts, announced }: CollectedFacts,
): { [name: string]: AnyOperation } {
  const operations = rows[noun] as unknown as { [name: string]: AnyOperation }
  const factsByOperation = Object.entries(FACTS[noun]) as [string, AnyFacts<Fact>][]
  const events = WEBHOOK_EVENTS[noun] as unknown as { [name: string]: AnyFacts<WebhookEvent> }
  return Object.fromEntries(
    factsByOperation.map(([name, factsOf]) => [
      name,
      async (...args: unknown[]) => {
        const outcome = await operations[name]!(...args)
        // Pushed one by one: the facts of a hundred thousand rows are too many arguments for one call.
        for (const event of events[name]?.(outcome, ...args) ?? []) announced.push(event)
        const newFacts = factsOf?.(outcome, ...args) ?? NO_FACTS
        for (const fact of newFacts) facts.push(fact)
        // `securityEvents.insert` has stored the event already: it is the row that the operation inserted.
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
    const queuedCount = await rows.logoutNotices.queue(ids, sessions[0]!.at)
    if (queuedCount > 0) rows.publish({ type: 'logout_notice.queued' })
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

/**
 * The facts of an ending.
 *
 * @param type null for no security event: for a mere restriction (`restrictionFacts`), and if another security event of
 * the same transaction covers the ending
 */
function endingFacts(
  kind: Ending['kind'],
  id: string,
  userId: string,
  at: Instant,
  type: SecurityEventType | null,
  caller: Caller | null = null,
): Fact[] {
  const subjectIds = kind === 'api_key' ? { keyId: id } : kind === 'session' ? { sessionId: id } : {}
  const event = type && securityEvent(type, userId, at, caller, subjectIds)
  return [
    endingFact(kind, id, userId, at),
    changedFact(kind, id, userId),
    ...(event ? [securityEventFact(event)] : []),
  ]
}

/** The facts of an account's change that does not end it. */
function accountChangeFacts(type: SecurityEventType, id: string, at: Instant, caller: Caller | null): Fact[] {
  return [changedFact('user', id, id), securityEventFact(securityEvent(type, id, at, caller))]
}

/**
 * The facts of a key's restriction, which make hubs reload its status: at once through the event, and through the sweep
 * of endings if the event is lost.
 */
function restrictionFacts({ id, userId }: { id: string; userId: string }, now: Instant): Fact[] {
  return endingFacts('api_key', id, userId, now, null)
}

/**
 * The ending of a key at its new, earlier expiry (after a rotation, the end of the overlap), if tokens from before the
 * change may still be valid then. The revocation feed shows the ending once that time has come; hubs learn the time
 * when they reload the key's status.
 */
function futureEndingFacts(
  { id, userId }: { id: string; userId: string },
  end: Instant,
  now: Instant,
): readonly Fact[] {
  return end < now + FEED_WINDOW ? [endingFact('api_key', id, userId, end)] : NO_FACTS
}

/**
 * Creates the id inside the transaction. Other ids are created before the transaction, to read its outcome back by them
 * if the answer to COMMIT is lost; no outcome is read back by the id of an ending.
 */
function endingFact(kind: Ending['kind'], subjectId: string, userId: string, at: Instant): Fact {
  return { type: 'ending', ending: { id: newId(at), kind, subjectId, userId, at } }
}

/** The security events that the person concerned sees: what an administrator did, but not which one, nor from where. */
function subjectEventFacts({ type, subject, at }: AuditEvent): Fact[] {
  const eventType = AUDIT_TYPES[type]
  if (eventType === null || subject.user_id === null) return []
  const subjectIds = subject.type === 'api_key' && subject.id !== null ? { keyId: subject.id } : {}
  return [securityEventFact(securityEvent(eventType, subject.user_id, at, null, subjectIds))]
}

function changedFact(kind: Ending['kind'], id: string, userId: string): Fact {
  return { type: 'changed', kind, id, userId }
}

function securityEventFact(event: ReturnType<typeof securityEvent>): Fact {
  return { type: 'security_event', event }
}
