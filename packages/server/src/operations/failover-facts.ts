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
  act(work: (tx: Transaction) => Promise<boolean>): Promise<ReplayOutcome>
  count(kind: ReplayKind, outcome: ReplayOutcome): void
  leaveOut(kind: ReplayKind, id: string, reason: UnresolvedChange['reason']): ReplayOutcome
  progress(entries: number): void
  now(): Instant
}

/** Entries per query. */
const BATCH = 500

/**
 * Re-applies facts that have exactly one entry in the journal: ended sessions, used links, ended invitations, trial
 * credits, ledger entries. A journal may have millions, so it is read again in batches, and only missing facts are kept
 * in memory.
 */
export async function replayFacts(files: readonly string[], replay: FactReplayDeps): Promise<void> {
  const { storage, act, count, progress } = replay
  const { store } = storage
  /** Ids that this run has re-applied: an entry may be in two files. */
  const done = new Set<string>()
  /** Missing ledger entries by cause. */
  const missing = new Map<string, LedgerEntry>()

  let read = 0
  let batch: JournalEntry[] = []
  for await (const { entry } of readJournalLines(files, replay.trust)) {
    batch.push(entry)
    if (batch.length < BATCH) continue
    await replayBatch(batch)
    batch = []
    read += BATCH
    progress(read)
  }
  await replayBatch(batch)
  await postAll([...missing.values()].sort((a, b) => a.createdAt - b.createdAt))

  async function replayBatch(entries: readonly JournalEntry[]): Promise<void> {
    await endSessions(only(entries, 'session'))
    await spendLinks(only(entries, 'magic_link'))
    await endInvitations(only(entries, 'invitation'))
    await claimCredits(only(entries, 'trial_credit'))
    await collectMissing(only(entries, 'ledger'))
  }

  async function endSessions(entries: EntryOf<'session'>[]): Promise<void> {
    const ended = await store.replay.sessionsEnded(entries.map(({ id }) => id))
    for (const { id, ended_by: by, at } of entries) {
      await settle('sessions', id, ended.get(id), async tx => {
        const session = await tx.sessions.end(id, by, at, { at: replay.now(), caller: null })
        return session !== null
      })
    }
  }

  async function spendLinks(entries: EntryOf<'magic_link'>[]): Promise<void> {
    const used = await store.replay.linksUsed(entries.map(({ id }) => id))
    for (const { id, at } of entries) {
      await settle(
        'magic_links',
        id,
        used.get(id),
        async tx => (await tx.magicLinks.consume(id, at)) !== null,
      )
    }
  }

  async function endInvitations(entries: EntryOf<'invitation'>[]): Promise<void> {
    for (const { id, at } of entries) {
      const found = await store.invitations.find(id)
      const isEnded = found ? (found.acceptedAt ?? found.revokedAt) !== null : undefined
      await settle('invitations', id, isEnded, async tx => (await tx.invitations.revoke(id, at)) !== null)
    }
  }

  async function claimCredits(entries: EntryOf<'trial_credit'>[]): Promise<void> {
    const claimed = await store.replay.claimedCredits(entries.map(entry => entry.address_hash))
    for (const { address_hash: hash, user_id: userId, at } of entries) {
      await settle('trial_credits', hash, claimed.has(hash), tx =>
        tx.billing.claimTrialCredit(hash, userId, at),
      )
    }
  }

  /**
   * Re-applies one fact, unless the database has it, and counts the outcome.
   * @param isPresent whether the database has the change; undefined if it has no such row
   */
  async function settle(
    kind: ReplayKind,
    id: string,
    isPresent: boolean | undefined,
    work: (tx: Transaction) => Promise<boolean>,
  ): Promise<void> {
    if (isPresent === undefined) return count(kind, 'gone')
    const outcome = isPresent || done.has(id) ? 'standing' : await act(work)
    if (outcome === 'replayed') done.add(id)
    count(kind, outcome)
  }

  async function collectMissing(entries: EntryOf<'ledger'>[]): Promise<void> {
    const posted = await store.replay.postedCauses(entries.map(({ entry }) => entry.cause))
    for (const { entry } of entries) {
      if (posted.has(entry.cause) || missing.has(entry.cause)) count('ledger_entries', 'standing')
      else missing.set(entry.cause, toLedgerEntry(entry))
    }
  }

  /** Posts in the original order, so that each entry gets its original time and balance. */
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
      const outcome = await act(async tx => (await tx.billing.post(entry)) !== null)
      if (outcome === 'replayed') return outcome
    }
    // The app may have repeated the charge with the same Idempotency-Key since the failover.
    if (await store.billing.findByCause(entry.cause)) return 'standing'
    return replay.leaveOut('ledger_entries', entry.id, 'not_covered')
  }

  /** Null if there is no such account. */
  async function balanceOf(userId: string): Promise<number | null> {
    return (await store.users.find(userId)) && store.billing.balance(userId)
  }
}

function only<Type extends JournalEntry['type']>(
  entries: readonly JournalEntry[],
  type: Type,
): EntryOf<Type>[] {
  return entries.filter((entry): entry is EntryOf<Type> => entry.type === type)
}
