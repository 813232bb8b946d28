import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import { randomToken } from '../secrets.ts'
import type { AuditedTransaction, Storage, Store, Transaction } from '../store.ts'
import {
  type Actor,
  type AuditChange,
  BY_COMMAND,
  MAX_REASON_LENGTH,
  MAX_STATE_LENGTH,
  type NewAuditEvent,
  reasonHash,
  type SaltedReason,
} from './audit-event.ts'

/** Who acts, from which network, in which request and for what reason. */
export interface ActedBy {
  actor: Actor
  /** Null for commands and settings. */
  caller: Caller | null
  requestId: string | null
  reason: string | null
}

export interface AuditedOutcome<Outcome> {
  outcome: Outcome
  /** The acts to record; empty if there is none, for example because nothing was changed. */
  changes: readonly AuditChange[]
}

export interface Audit {
  /**
   * Runs an administrative operation as one transaction and records what it reports in the same transaction. Only here
   * do transactions have the operations of `AdministrativeChanges`, so that none of them goes unrecorded. Otherwise
   * like `Storage.transaction`.
   */
  perform<Outcome>(
    by: ActedBy,
    work: (tx: AuditedTransaction) => Promise<AuditedOutcome<Outcome>>,
    readBack?: (store: Store) => Promise<Outcome | undefined>,
  ): Promise<Outcome>
  /** Like `perform`, within a transaction of the caller, which must do nothing after this call. */
  performWithin<Outcome>(
    tx: Transaction,
    by: ActedBy,
    work: (tx: AuditedTransaction) => Promise<AuditedOutcome<Outcome>>,
  ): Promise<Outcome>
}

export const BY_COMMAND_LINE: ActedBy = { actor: BY_COMMAND, caller: null, requestId: null, reason: null }

const SALT_BYTES = 16
/**
 * Name of the mutex under which `perform` runs its transactions. Each of them locks the head of the chain in the
 * database, so the others wait in memory instead of each holding a connection.
 */
const CHAIN_LOCK = 'audit-chain'

export function createAudit({ storage, clock }: { storage: Storage; clock: Clock }): Audit {
  return { perform, performWithin }

  function perform<Outcome>(
    by: ActedBy,
    work: (tx: AuditedTransaction) => Promise<AuditedOutcome<Outcome>>,
    readBack?: (store: Store) => Promise<Outcome | undefined>,
  ): Promise<Outcome> {
    return storage.runExclusive([CHAIN_LOCK], () =>
      storage.transaction(tx => performWithin(tx, by, work), readBack),
    )
  }

  async function performWithin<Outcome>(
    tx: Transaction,
    by: ActedBy,
    work: (tx: AuditedTransaction) => Promise<AuditedOutcome<Outcome>>,
  ): Promise<Outcome> {
    const { outcome, changes } = await work(tx as AuditedTransaction)
    if (changes.length > 0) await tx.audit.append(changes.map(change => toEvent(change, by)))
    return outcome
  }

  function toEvent(change: AuditChange, by: ActedBy): NewAuditEvent {
    const now = clock.now()
    return {
      ...boundState(change),
      id: newId(now),
      at: now,
      actor: by.actor,
      reason: by.reason === null ? null : saltReason(by.reason),
      network: by.caller?.network ?? null,
      requestId: by.requestId,
    }
  }
}

export function withoutChanges<Outcome>(outcome: Outcome): AuditedOutcome<Outcome> {
  return { outcome, changes: [] }
}

export function auditedOutcome<Outcome>(
  outcome: Outcome,
  ...changes: AuditChange[]
): AuditedOutcome<Outcome> {
  return { outcome, changes }
}

function saltReason(reason: string): SaltedReason {
  const text = [...reason].slice(0, MAX_REASON_LENGTH).join('')
  const salt = randomToken(SALT_BYTES)
  return { text, salt, hash: reasonHash(salt, text) }
}

/** Replaces a state longer than `MAX_STATE_LENGTH` by its size, as a last resort against oversized rows. */
function boundState(change: AuditChange): AuditChange {
  const size = JSON.stringify([change.before, change.after]).length
  return size <= MAX_STATE_LENGTH ? change : { ...change, before: null, after: { omitted_characters: size } }
}
