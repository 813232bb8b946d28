import { type Clock, HOUR, type Instant, SECOND } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Storage } from '../store.ts'
import { createBatches } from './batches.ts'
import {
  addUsage,
  bucketStart,
  type Counter,
  noUsage,
  type UsageCounts,
  type UsageRow,
  usageRows,
} from './usage.ts'

/** Interval of flushes. A crash loses the counts of this interval and of a flush in progress: less than ten seconds. */
export const USAGE_FLUSH_INTERVAL = 5 * SECOND
/**
 * Maximum number of keys and persons with counts that are not stored yet, which take some 45 MB; further keys and
 * persons are not counted. It is reached only if so many keys are used between two flushes, or if flushes fail.
 */
const MAX_SUBJECTS = 100_000
/** With this many subjects, a flush starts before USAGE_FLUSH_INTERVAL has passed. */
const FLUSH_EARLY_AT = 20_000
/** Subjects (keys and persons) per transaction, which adds to up to four rows of counts for each. */
const SUBJECTS_PER_FLUSH = 250

/** Counts the usage of keys and persons, in memory only. */
export interface Meter {
  /**
   * @param keyId null if the person acted without a key
   * @param at an instant of the hour that the amount is counted in; by default now
   */
  count(userId: string, keyId: string | null, counter: Counter, amount?: number, at?: Instant): void
  /** @param code why a genuine key was refused: an error code, never a client's text */
  countRefusal(userId: string, keyId: string, code: string): void
}

export interface UsageMeter extends Meter {
  /** Stores the counts, each at most once. Rejects if they could not be stored; a later flush stores them. */
  flush(): Promise<void>
}

/** The counts of a key, or of a person without a key. */
interface Subject extends UsageCounts {
  userId: string
  keyId: string | null
}

/** Counts of one hour that are stored in one transaction: those of at most SUBJECTS_PER_FLUSH subjects. */
interface Batch {
  hour: Instant
  subjects: readonly Subject[]
}

export function createMeter({
  storage,
  clock,
  log,
  onCounted = () => {},
  maxSubjects = MAX_SUBJECTS,
  flushEarlyAt = FLUSH_EARLY_AT,
}: {
  storage: Storage
  clock: Clock
  log: Log
  /** Called with the counts of each subject and hour, once, when they are put into a batch. */
  onCounted?: (hour: Instant, counts: UsageCounts) => void
  maxSubjects?: number
  flushEarlyAt?: number
}): UsageMeter {
  /** Counts since the last flush, by hour: usually one hour, or two if the hour changed in between. */
  const unflushedCounts = new Map<Instant, Map<string, Subject>>()
  /** The start of the hour of the last count. */
  let hour = bucketStart('hour', clock.now())
  /** The subjects of that hour by the id of the key, or of the person for counts without a key. */
  let subjectsOfHour = new Map<string, Subject>()
  const batches = createBatches<Batch>({
    storage,
    clock,
    add: (tx, { hour, subjects }) => tx.usage.add(rowsOf(hour, subjects)),
  })
  /** Number of subjects in `unflushedCounts` and `batches`. */
  let subjectCount = 0
  /** Number of counts that were lost since the last flush, because there were `maxSubjects` subjects. */
  let droppedCount = 0
  let lastFlush: Promise<void> = Promise.resolve()

  return {
    count(userId, keyId, counter, amount = 1, at = clock.now()) {
      const subject = subjectOf(userId, keyId, at)
      if (subject) subject[counter] += amount
    },
    countRefusal(userId, keyId, code) {
      const subject = subjectOf(userId, keyId, clock.now())
      if (subject) subject.refused[code] = (subject.refused[code] ?? 0) + 1
    },
    flush,
  }

  function subjectOf(userId: string, keyId: string | null, at: Instant): Subject | null {
    if (at < hour || at - hour >= HOUR) switchToHour(bucketStart('hour', at))
    // Ids of keys and users are UUIDs, so they never coincide.
    const existingSubject = subjectsOfHour.get(keyId ?? userId)
    if (existingSubject) return existingSubject
    if (subjectCount >= maxSubjects) {
      droppedCount++
      return null
    }
    const subject: Subject = { ...noUsage(), userId, keyId }
    if (subjectsOfHour.size === 0) unflushedCounts.set(hour, subjectsOfHour)
    subjectsOfHour.set(keyId ?? userId, subject)
    if (++subjectCount === flushEarlyAt) void flushEarly()
    return subject
  }

  function switchToHour(start: Instant): void {
    hour = start
    subjectsOfHour = unflushedCounts.get(start) ?? new Map()
  }

  /**
   * Moves the counts into batches, which never change afterwards. They are sorted by owner, so that the counts of an
   * owner's keys are usually in one batch, which adds their sum to the owner's row.
   */
  function closeBatches(): void {
    for (const [hour, subjectsById] of unflushedCounts) {
      const subjects = [...subjectsById.values()].sort(compareOwners)
      for (let start = 0; start < subjects.length; start += SUBJECTS_PER_FLUSH)
        batches.push({ hour, subjects: subjects.slice(start, start + SUBJECTS_PER_FLUSH) })
      for (const counts of subjects) onCounted(hour, counts)
    }
    unflushedCounts.clear()
    subjectsOfHour = new Map()
  }

  function flush(): Promise<void> {
    // Flushes are serialized, so that batches are recorded in their order.
    lastFlush = lastFlush.catch(() => {}).then(storeAll)
    return lastFlush
  }

  async function storeAll(): Promise<void> {
    closeBatches()
    await batches.store(({ subjects }) => {
      subjectCount -= subjects.length
    })
    if (droppedCount > 0)
      log.error({ dropped: droppedCount }, 'usage was not counted: too many counts are not stored yet')
    droppedCount = 0
  }

  async function flushEarly(): Promise<void> {
    await flush().catch(error => log.warn({ error: String(error) }, 'usage was not stored yet'))
  }
}

function compareOwners(left: Subject, right: Subject): number {
  if (left.userId === right.userId) return 0
  return left.userId < right.userId ? -1 : 1
}

/** The sums that a batch adds to the stored rows, one for each row. */
function rowsOf(hour: Instant, subjects: readonly Subject[]): UsageRow[] {
  const rows = new Map<string, UsageRow>()
  for (const { userId, keyId, ...counts } of subjects) {
    for (const row of usageRows(userId, keyId, hour, counts)) {
      const name = `${row.keyId ?? row.userId} ${row.unit}`
      const sum = rows.get(name)
      if (sum) addUsage(sum, row)
      else rows.set(name, { ...row, refused: { ...row.refused } })
    }
  }
  return [...rows.values()]
}
