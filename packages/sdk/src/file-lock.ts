import { lstatSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause, type SdkClock } from './clock.ts'
import { KeywayError } from './errors.ts'
import { FOLDER_MODE } from './private-file.ts'

/**
 * A lock between processes, for platforms without flock(2): a folder of numbered turns. A process takes the lock by
 * creating the file of the next number, which it may do once the previous turn has ended or its process is dead. Only
 * one process can create a file, and it writes to no other turn's file, so two never take over from the same dead
 * process.
 */

/** Interval at which the lock's holder writes a heartbeat, in milliseconds. */
const HEARTBEAT_INTERVAL_MS = 1000
/**
 * A holder whose file has not changed for this long, by the observer's own clock, counts as dead. A living process that
 * was suspended may lose the lock in this way; the stored Idempotency-Key then gives both processes the same tokens.
 */
const HOLDER_TIMEOUT_MS = 5000
const POLL_MS = 50

/** Runs `work` while no other process holds this lock. Waits for a living holder, however long. */
export async function withFileLock<Answer>(
  folder: string,
  work: () => Promise<Answer>,
  clock: SdkClock,
): Promise<Answer> {
  const turnPath = await awaitTurn(folder, clock)
  const heartbeat = setInterval(
    () => ignoringErrors(() => utimesSync(turnPath, new Date(), new Date())),
    HEARTBEAT_INTERVAL_MS,
  )
  try {
    return await work()
  } finally {
    clearInterval(heartbeat)
    // Flag `r+` does not create the file again if other processes took this one for dead and removed the file.
    ignoringErrors(() => writeFileSync(turnPath, ENDED, { flag: 'r+' }))
  }
}

/** Ignores errors: at worst other processes wait for `HOLDER_TIMEOUT_MS`, or find that a turn's file is missing. */
function ignoringErrors<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** The content of a turn's file after the turn has ended; until then the file is empty. */
const ENDED = 'over'

/** Waits until this process can take the lock. @returns the path of its turn's file */
async function awaitTurn(folder: string, clock: SdkClock): Promise<string> {
  let observation = { number: -1, state: '', since: 0 }
  for (;;) {
    const number = lastTurnNumber(folder)
    const state = stateOf(folder, number)
    if (number !== observation.number || state !== observation.state)
      observation = { number, state, since: clock.now() }
    const isFree = state === ENDED || clock.now() - observation.since >= HOLDER_TIMEOUT_MS
    if (isFree && createTurn(folder, number + 1)) return turnFile(folder, number + 1)
    await pause(clock, POLL_MS * (0.5 + clock.random()))
  }
}

/**
 * The state of a turn: `over` if it has ended or `number` is 0, otherwise the time of its holder's last heartbeat; `0`
 * if the turn's file was removed meanwhile.
 */
function stateOf(folder: string, number: number): string {
  if (number === 0) return ENDED
  const { size, mtimeMs } = ignoringErrors(() => statSync(turnFile(folder, number))) ?? {
    size: 0,
    mtimeMs: 0,
  }
  return size > 0 ? ENDED : String(mtimeMs)
}

/** Takes the lock by creating the turn's file; false if another process was first, or if later turns exist. */
function createTurn(folder: string, number: number): boolean {
  try {
    writeFileSync(turnFile(folder, number), '', { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw lockError(folder, error)
  }
  // A slow process may create a turn again that ended and was removed long ago; then later turns exist.
  const isLast = lastTurnNumber(folder) === number
  // Keeps the previous turn's file, so that a process that lists the folder meanwhile sees at least one of the two.
  for (const obsoleteTurn of isLast ? turnNumbers(folder).filter(turn => turn < number - 1) : [number])
    rmSync(turnFile(folder, obsoleteTurn), { force: true })
  return isLast
}

/** The number of the latest turn; 0 before the first one. */
function lastTurnNumber(folder: string): number {
  return Math.max(0, ...turnNumbers(folder))
}

function turnNumbers(folder: string): number[] {
  try {
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
    // Another user who can write to the parent folder could put a link here, and `createTurn` would remove files of the
    // folder that it points to.
    if (lstatSync(folder).isSymbolicLink()) throw new Error('it is a symbolic link')
    return readdirSync(folder).map(Number).filter(Number.isSafeInteger)
  } catch (error) {
    throw lockError(folder, error)
  }
}

function turnFile(folder: string, number: number): string {
  return join(folder, String(number))
}

function lockError(folder: string, cause: unknown): KeywayError {
  const message = `${folder}, which orders refreshes, cannot be used: ${(cause as Error).message}`
  return new KeywayError('invalid_configuration', message, { cause })
}
