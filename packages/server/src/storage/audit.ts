import { type SqlBool, sql } from 'kysely'
import {
  type Actor,
  type AuditEvent,
  FIRST_HASH,
  hashOf,
  type NewAuditEvent,
  type Subject,
} from '../audit/audit-event.ts'
import type {
  AuditChain,
  AuditChanges,
  AuditFilter,
  AuditStore,
  SealedPosition,
} from '../audit/audit-store.ts'
import { canonicalJson, type PlainJson } from '../audit/canonical-json.ts'
import { toSlice } from '../paging.ts'
import type { Db } from './engine.ts'
import type { AuditChainRow, AuditEventRow } from './schema.ts'
import { inChunks, type Statements } from './statements.ts'

/** The id of the only row of `audit_chain`. */
const CHAIN_ID = 'chain'

export function createAuditStore({ db, atomically }: Statements): AuditStore & AuditChanges {
  return {
    append: events => atomically(tx => append(tx, events)),
    async chain() {
      const row = await db.selectFrom('audit_chain').selectAll().where('id', '=', CHAIN_ID).executeTakeFirst()
      return toChain(row)
    },
    async list(filter, { limit, after }) {
      const rows = await findMatching(db, filter, { limit: limit + 1, before: after?.at ?? null })
      return toSlice(await withReasons(db, rows), limit, ({ sequence, id }) => ({ at: sequence, id }))
    },
    async after(sequence, filter, limit) {
      return withReasons(db, await findMatching(db, filter, { limit, after: sequence }))
    },
    async lastBefore(at) {
      const row = await db
        .selectFrom('audit_events')
        .selectAll()
        .where('at', '<', at)
        .orderBy('at', 'desc')
        .orderBy('sequence', 'desc')
        .limit(1)
        .executeTakeFirst()
      return row ? toEvent(row, undefined) : null
    },
    async seal({ sequence, hash, mac }) {
      await db
        .updateTable('audit_chain')
        .set({ sealed_sequence: sequence, sealed_hash: hash, sealed_mac: mac })
        .where('id', '=', CHAIN_ID)
        .where(sql<SqlBool>`coalesce(sealed_sequence, 0) <= ${sequence}`)
        .execute()
    },
    async eraseReasons(userId) {
      await db.deleteFrom('audit_reasons').where('user_id', '=', userId).execute()
    },
    async markPruned({ sequence, hash, mac }) {
      await db
        .updateTable('audit_chain')
        .set({ pruned_sequence: sequence, pruned_hash: hash, pruned_mac: mac })
        .where('id', '=', CHAIN_ID)
        .where(sql<SqlBool>`coalesce(pruned_sequence, 0) <= ${sequence}`)
        .execute()
    },
    prune: batch =>
      atomically(async tx => {
        const prunableRows = await tx
          .selectFrom('audit_events')
          .select('sequence')
          .where('sequence', '<=', tx.selectFrom('audit_chain').select('pruned_sequence'))
          .orderBy('sequence')
          .limit(batch)
          .execute()
        const sequences = prunableRows.map(({ sequence }) => sequence)
        for (const chunk of inChunks(sequences)) {
          await tx.deleteFrom('audit_reasons').where('sequence', 'in', chunk).execute()
          await tx.deleteFrom('audit_events').where('sequence', 'in', chunk).execute()
        }
        return sequences.length
      }),
  }
}

/**
 * Appends events to the chain. The first statement locks the chain's head until the transaction ends, so nothing but
 * the database may be awaited afterwards.
 */
async function append(tx: Db, events: readonly NewAuditEvent[]): Promise<AuditEvent[]> {
  const head = await lockHead(tx)
  const appendedEvents: AuditEvent[] = []
  let { sequence, hash: previousHash, at } = head
  for (const event of events) {
    at = Math.max(at, event.at)
    const datedEvent = { ...event, at }
    const hash = hashOf(previousHash, datedEvent)
    sequence++
    appendedEvents.push({ ...datedEvent, sequence, previousHash, hash })
    previousHash = hash
  }
  for (const chunk of inChunks(appendedEvents)) {
    await tx.insertInto('audit_events').values(chunk.map(toRow)).execute()
    const reasons = chunk.flatMap(toReasonRow)
    if (reasons.length > 0) await tx.insertInto('audit_reasons').values(reasons).execute()
  }
  await tx
    .updateTable('audit_chain')
    .set({ sequence, at, hash: previousHash })
    .where('id', '=', CHAIN_ID)
    .execute()
  return appendedEvents
}

/** Locks the head by an upsert, since there is no row after the restore of an older version's backup. */
async function lockHead(tx: Db): Promise<Pick<AuditChainRow, 'sequence' | 'at' | 'hash'>> {
  return tx
    .insertInto('audit_chain')
    .values({ id: CHAIN_ID, sequence: 0, at: 0, hash: FIRST_HASH })
    .onConflict(conflict => conflict.column('id').doUpdateSet(eb => ({ id: eb.ref('excluded.id') })))
    .returning(['sequence', 'at', 'hash'])
    .executeTakeFirstOrThrow()
}

/** `before` and `after` are exclusive bounds of the sequence. Rows are read forwards with `after`, else backwards. */
type SequenceRange = { limit: number; before?: number | null; after?: number }

/**
 * Reads the rows that match the filter. Each condition has an index whose second column is the sequence. The two
 * columns that may have a subject's id are read by separate queries, each with its index.
 */
async function findMatching(db: Db, filter: AuditFilter, range: SequenceRange): Promise<AuditEventRow[]> {
  const { subject } = filter
  if (subject === undefined) return selectRows(db, filter, range)
  const rowsOfColumns = await Promise.all(
    (['subject_id', 'user_id'] as const).map(column => selectRows(db, filter, range, [column, subject])),
  )
  const rowsBySequence = new Map(rowsOfColumns.flat().map(row => [row.sequence, row]))
  const isForward = range.after !== undefined
  const rows = [...rowsBySequence.values()].sort((a, b) =>
    isForward ? a.sequence - b.sequence : b.sequence - a.sequence,
  )
  return rows.slice(0, range.limit)
}

function selectRows(
  db: Db,
  { actor, type, from, to }: AuditFilter,
  { limit, before = null, after }: SequenceRange,
  match?: ['subject_id' | 'user_id', string],
): Promise<AuditEventRow[]> {
  let query = db.selectFrom('audit_events').selectAll()
  if (match) query = query.where(match[0], '=', match[1])
  if (actor !== undefined) query = query.where('actor_id', '=', actor)
  if (type !== undefined) query = query.where('type', '=', type)
  // Instants are converted to sequence numbers, since the index of each condition contains the sequence, but not the
  // time.
  if (from !== undefined) query = query.where('sequence', '>=', firstSequenceSince(db, from))
  if (to !== undefined) query = query.where('sequence', '<', firstSequenceSince(db, to))
  if (before !== null) query = query.where('sequence', '<', before)
  if (after !== undefined) query = query.where('sequence', '>', after)
  return query
    .orderBy('sequence', after === undefined ? 'desc' : 'asc')
    .limit(limit)
    .execute()
}

/** The sequence of the first row at or after the instant; if there is none, one that is above all rows. */
function firstSequenceSince(db: Db, at: number) {
  const firstRow = db
    .selectFrom('audit_events')
    .select('sequence')
    .where('at', '>=', at)
    .orderBy('at')
    .orderBy('sequence')
    .limit(1)
  return sql<number>`coalesce((${firstRow}), ${Number.MAX_SAFE_INTEGER})`
}

async function withReasons(db: Db, rows: readonly AuditEventRow[]): Promise<AuditEvent[]> {
  const sequences = rows.filter(row => row.reason_hash !== null).map(({ sequence }) => sequence)
  const reasons = new Map<number, { salt: string; reason: string }>()
  for (const chunk of inChunks(sequences)) {
    const reasonRows = await db
      .selectFrom('audit_reasons')
      .selectAll()
      .where('sequence', 'in', chunk)
      .execute()
    for (const row of reasonRows) reasons.set(row.sequence, row)
  }
  return rows.map(row => toEvent(row, reasons.get(row.sequence)))
}

function toRow(event: AuditEvent): AuditEventRow {
  const { actor, subject, before, after } = event
  return {
    sequence: event.sequence,
    id: event.id,
    at: event.at,
    type: event.type,
    actor_id: actor.id,
    actor: canonicalJson({ ...actor }),
    subject_id: subject.id,
    user_id: subject.user_id,
    subject: canonicalJson({ ...subject }),
    before_state: before && canonicalJson(before),
    after_state: after && canonicalJson(after),
    reason_hash: event.reason?.hash ?? null,
    network: event.network,
    request_id: event.requestId,
    previous_hash: event.previousHash,
    hash: event.hash,
  }
}

function toReasonRow({ sequence, subject, reason }: AuditEvent) {
  if (reason?.text == null || reason.salt === null) return []
  return [{ sequence, user_id: subject.user_id, salt: reason.salt, reason: reason.text }]
}

function toEvent(row: AuditEventRow, reason: { salt: string; reason: string } | undefined): AuditEvent {
  return {
    sequence: row.sequence,
    id: row.id,
    at: row.at,
    type: row.type,
    // The ids are read from the columns that searches use, so that the hash covers these columns too.
    actor: { ...parseJson<Actor>(row.actor), id: row.actor_id },
    subject: { ...parseJson<Subject>(row.subject), id: row.subject_id, user_id: row.user_id },
    before: row.before_state === null ? null : parseJson(row.before_state),
    after: row.after_state === null ? null : parseJson(row.after_state),
    reason:
      row.reason_hash === null
        ? null
        : { text: reason?.reason ?? null, salt: reason?.salt ?? null, hash: row.reason_hash },
    network: row.network,
    requestId: row.request_id,
    previousHash: row.previous_hash,
    hash: row.hash,
  }
}

function parseJson<Value>(text: string): Value {
  return JSON.parse(text) as Value & PlainJson
}

function toChain(row: AuditChainRow | undefined): AuditChain {
  if (!row) return { sequence: 0, hash: FIRST_HASH, sealed: null, pruned: null }
  return {
    sequence: row.sequence,
    hash: row.hash,
    sealed: toSealedPosition(row.sealed_sequence, row.sealed_hash, row.sealed_mac),
    pruned: toSealedPosition(row.pruned_sequence, row.pruned_hash, row.pruned_mac),
  }
}

function toSealedPosition(
  sequence: number | null,
  hash: string | null,
  mac: string | null,
): SealedPosition | null {
  return sequence === null || hash === null || mac === null ? null : { sequence, hash, mac }
}
