import type { Trust } from '../backup/authentication.ts'
import { type EntryOf, type JournalEntry, toLedgerEntry } from '../backup/journal-entry.ts'
import { readJournalLines } from '../backup/journal-reader.ts'
import type { LedgerEntry } from '../billing/ledger.ts'
import type { Instant } from '../clock.ts'
import type { Storage, Transaction } from '../store.ts'
import type { ReplayKind, ReplayOutcome, UnresolvedChange } from './replay-report.ts'

export interface FactReplayDeps {
  storage: Storage
  trust: Trust
  dryRun: boolean
  /** Makes one change, unless this is a dry run. `change` returns false if the database has the change already. */
  apply(change: (tx: Transaction) => Promise<boolean>): Promise<ReplayOutcome>
  count(kind: ReplayKind, outcome: ReplayOutcome): void
  /** Reports a change that the operator must decide on. */
  reportUnresolved(kind: ReplayKind, id: string, reason: UnresolvedChange['reason']): ReplayOutcome
  progress(entries: number): void
  now(): Instant
}

/** Journal entries per query. */
const BATCH = 500

/**
 * Re-applies facts that have exactly one entry in the journal: ended sessions, used links, ended invitations, trial
 * credits, ledger entries. A journal may have millions, so it is read again in batches, and only missing facts are kept
 * in memory.
 */
export async function replayFacts(files: readonly string[], replay: FactReplayDeps): Promise<void> {
  const { storage, apply, count, progress } = replay
  const { store } = storage
  /** Ids of facts that this run has re-applied, since an entry may be in two files. */
  const replayedIds = new Set<string>()
  /** Ledger entries that the database lost, by their cause. */
  const missingEntries = new Map<string, LedgerEntry>()

  let entriesRead = 0
  let batch: JournalEntry[] = []
  for await (const { entry } of readJournalLines(files, replay.trust)) {
    batch.push(entry)
    if (batch.length < BATCH) continue
    await replayBatch(batch)
    batch = []
    entriesRead += BATCH
    progress(entriesRead)
  }
  await replayBatch(batch)
  await postAll([...missingEntries.values()].sort((a, b) => a.createdAt - b.createdAt))

  async function replayBatch(entries: readonly JournalEntry[]): Promise<void> {
    await endSessions(entriesOfType(entries, 'session'))
    await consumeLinks(entriesOfType(entries, 'magic_link'))
    await endInvitations(entriesOfType(entries, 'invitation'))
    await claimCredits(entriesOfType(entries, 'trial_credit'))
    await collectMissing(entriesOfType(entries, 'ledger'))
  }

  async function endSessions(entries: EntryOf<'session'>[]): Promise<void> {
    const isEndedById = await store.replay.sessionsEnded(entries.map(({ id }) => id))
    for (const { id, ended_by: by, at } of entries) {
      await replayFact('sessions', id, isEndedById.get(id), async tx => {
        const session = await tx.sessions.end(id, by, at, { at: replay.now(), caller: null })
        return session !== null
      })
    }
  }

  async function consumeLinks(entries: EntryOf<'magic_link'>[]): Promise<void> {
    const isUsedById = await store.replay.linksUsed(entries.map(({ id }) => id))
    for (const { id, at } of entries) {
      await replayFact(
        'magic_links',
        id,
        isUsedById.get(id),
        async tx => (await tx.magicLinks.consume(id, at)) !== null,
      )
    }
  }

  async function endInvitations(entries: EntryOf<'invitation'>[]): Promise<void> {
    for (const { id, at } of entries) {
      const invitation = await store.invitations.find(id)
      const isEnded = invitation ? (invitation.acceptedAt ?? invitation.revokedAt) !== null : undefined
      await replayFact('invitations', id, isEnded, async tx => (await tx.invitations.revoke(id, at)) !== null)
    }
  }

  async function claimCredits(entries: EntryOf<'trial_credit'>[]): Promise<void> {
    const claimedHashes = await store.replay.claimedCredits(entries.map(entry => entry.address_hash))
    for (const { address_hash: hash, user_id: userId, at } of entries) {
      await replayFact('trial_credits', hash, claimedHashes.has(hash), tx =>
        tx.billing.claimTrialCredit(hash, userId, at),
      )
    }
  }

  /**
   * Re-applies one fact, unless the database has it, and counts the outcome.
   * @param isPresent whether the database has the change; undefined if it has no row for the id
   */
  async function replayFact(
    kind: ReplayKind,
    id: string,
    isPresent: boolean | undefined,
    change: (tx: Transaction) => Promise<boolean>,
  ): Promise<void> {
    if (isPresent === undefined) return count(kind, 'gone')
    const outcome = isPresent || replayedIds.has(id) ? 'standing' : await apply(change)
    if (outcome === 'replayed') replayedIds.add(id)
    count(kind, outcome)
  }

  async function collectMissing(entries: EntryOf<'ledger'>[]): Promise<void> {
    const postedCauses = await store.replay.postedCauses(entries.map(({ entry }) => entry.cause))
    for (const { entry } of entries) {
      if (postedCauses.has(entry.cause) || missingEntries.has(entry.cause))
        count('ledger_entries', 'standing')
      else missingEntries.set(entry.cause, toLedgerEntry(entry))
    }
  }

  /** Posts the entries in their original order, so that each gets its original time and balance. */
  async function postAll(entries: readonly LedgerEntry[]): Promise<void> {
    const balances = new Map<string, number | null>()
    for (const entry of entries) {
      const { userId } = entry
      if (!balances.has(userId)) balances.set(userId, await balanceOf(userId))
      const balance = balances.get(userId)!
      if (balance === null) {
        count('ledger_entries', 'gone')
        continue
      }
      const outcome = await post(entry, balance)
      count('ledger_entries', outcome)
      if (outcome === 'replayed') balances.set(userId, balance + entry.amount)
    }
  }

  async function post(entry: LedgerEntry, balance: number): Promise<ReplayOutcome> {
    const isCovered = balance + entry.amount >= 0
    if (isCovered || !replay.dryRun) {
      const outcome = await apply(async tx => (await tx.billing.post(entry)) !== null)
      if (outcome === 'replayed') return outcome
    }
    // The app may have repeated the charge with the same Idempotency-Key since the failover.
    if (await store.billing.findByCause(entry.cause)) return 'standing'
    return replay.reportUnresolved('ledger_entries', entry.id, 'not_covered')
  }

  /** Null if there is no such account. */
  async function balanceOf(userId: string): Promise<number | null> {
    return (await store.users.find(userId)) && store.billing.balance(userId)
  }
}

function entriesOfType<Type extends JournalEntry['type']>(
  entries: readonly JournalEntry[],
  type: Type,
): EntryOf<Type>[] {
  return entries.filter((entry): entry is EntryOf<Type> => entry.type === type)
}
