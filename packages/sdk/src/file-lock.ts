import { mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause, type SdkClock } from './clock.ts'
import { KeywayError } from './errors.ts'
import { FOLDER_MODE } from './private-file.ts'

/*
 * A lock between processes, for platforms without flock(2): a folder of numbered turns. Who creates the next number holds
 * the lock, and may do so once the turn before is over or its process is dead. Every process writes to the file of its own
 * turn only, so there is no moment at which two of them could take over from a dead one.
 */

/** Interval at which a process that holds the lock shows that it lives, in milliseconds. */
const BEAT_MS = 1000
/**
 * A turn whose file did not change for so long, as one process sees it by its own clock, is that of a dead process. A
 * living one that was suspended may lose its turn so; then the stored Idempotency-Key keeps its refresh harmless.
 */
const DEAD_MS = 5000
const POLL_MS = 50

/** Does `work` while no other process does any under this lock. Waits for those that live, however long. */
export async function withFileLock<Answer>(
  folder: string,
  work: () => Promise<Answer>,
  clock: SdkClock,
): Promise<Answer> {
  const turn = await nextTurn(folder, clock)
  const beat = setInterval(() => attempt(() => utimesSync(turn, new Date(), new Date())), BEAT_MS)
  try {
    return await work()
  } finally {
    clearInterval(beat)
    // `r+` does not create it again if it was lost and removed.
    attempt(() => writeFileSync(turn, OVER, { flag: 'r+' }))
  }
}

/** A failure has the effect that others wait for `DEAD_MS`, or find the turn gone. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** The content of a turn's file after its end; it is empty before. */
const OVER = 'over'

/** Waits for its turn. @returns the turn's file */
async function nextTurn(folder: string, clock: SdkClock): Promise<string> {
  let seen = { number: -1, state: '', since: 0 }
  for (;;) {
    const number = lastTurn(folder)
    const state = stateOf(folder, number)
    if (number !== seen.number || state !== seen.state) seen = { number, state, since: clock.now() }
    const isFree = state === OVER || clock.now() - seen.since >= DEAD_MS
    if (isFree && take(folder, number + 1)) return turnFile(folder, number + 1)
    await pause(clock, POLL_MS * (0.5 + clock.random()))
  }
}

/** `over`, or when its process last showed that it lives. */
function stateOf(folder: string, number: number): string {
  if (number === 0) return OVER
  const { size, mtimeMs } = attempt(() => statSync(turnFile(folder, number))) ?? { size: 0, mtimeMs: 0 }
  return size > 0 ? OVER : String(mtimeMs)
}

/** Whether this process has got the turn. */
function take(folder: string, number: number): boolean {
  try {
    writeFileSync(turnFile(folder, number), '', { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw unusable(folder, error)
  }
  // A slow process creates a number anew that was taken and removed long ago: there are later ones.
  const isLast = lastTurn(folder) === number
  // The turn before stays, so that a process that lists the folder meanwhile sees one of the two.
  for (const old of isLast ? numbers(folder).filter(each => each < number - 1) : [number])
    rmSync(turnFile(folder, old), { force: true })
  return isLast
}

/** 0 before the first turn. */
function lastTurn(folder: string): number {
  return Math.max(0, ...numbers(folder))
}

function numbers(folder: string): number[] {
  try {
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
    return readdirSync(folder).map(Number).filter(Number.isSafeInteger)
  } catch (error) {
    throw unusable(folder, error)
  }
}

function turnFile(folder: string, number: number): string {
  return join(folder, String(number))
}

function unusable(folder: string, cause: unknown): KeywayError {
  const message = `${folder}, which orders refreshes, cannot be used: ${(cause as Error).message}`
  return new KeywayError('invalid_configuration', message, { cause })
}
