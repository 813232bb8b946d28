import { lstatSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause, type SdkClock } from './clock.ts'
import { KeywayError } from './errors.ts'
import { FOLDER_MODE } from './private-file.ts'

/**
 * A lock between processes, for platforms without flock(2): a folder of numbered turns. A process takes the lock by
 * creating the file of the next number, which it may do once the previous turn is over or its process is dead. A
 * process writes only to the file of its own turn, so two processes never take over from the same dead one.
 */

/** Interval at which the lock's holder writes a heartbeat, in milliseconds. */
const BEAT_MS = 1000
/**
 * A holder whose file has not changed for this long, by the observer's own clock, counts as dead. A living process that
 * was suspended may lose the lock in this way; the stored Idempotency-Key then keeps its refresh harmless.
 */
const DEAD_MS = 5000
const POLL_MS = 50

/** Runs `work` while no other process runs any under this lock. Waits for living holders, however long. */
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
    // Flag `r+` does not create the file again if the turn was lost and removed.
    attempt(() => writeFileSync(turn, OVER, { flag: 'r+' }))
  }
}

/** Errors are ignored: their only effect is that others wait for `DEAD_MS`, or that the turn's file is missing. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** The content of a turn's file after its end; it is empty before. */
const OVER = 'over'

/** Waits for a turn. @returns its file */
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

/** `over`, or the time of the holder's last heartbeat. */
function stateOf(folder: string, number: number): string {
  if (number === 0) return OVER
  const { size, mtimeMs } = attempt(() => statSync(turnFile(folder, number))) ?? { size: 0, mtimeMs: 0 }
  return size > 0 ? OVER : String(mtimeMs)
}

/** Takes the turn of this number, if no other process has taken it. */
function take(folder: string, number: number): boolean {
  try {
    writeFileSync(turnFile(folder, number), '', { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw unusable(folder, error)
  }
  // A slow process may create a number again that was taken and removed long ago: then there are later ones.
  const isLast = lastTurn(folder) === number
  // Keeps the previous turn's file, so that a process that lists the folder meanwhile sees at least one of the two.
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
    // In a folder of several users it may lead to any other one, whose files would be removed.
    if (lstatSync(folder).isSymbolicLink()) throw new Error('it is a symbolic link')
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
