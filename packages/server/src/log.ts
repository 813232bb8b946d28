import pino, { type DestinationStream } from 'pino'
import { MINUTE } from './clock.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/**
 * Fields are ids, codes, numbers and masked addresses; never a secret, a token, a URL with a query or a whole
 * address. A message is a constant; variable parts are fields.
 */
export interface Log {
  /** Lines of this level are not limited in number (`MAX_LINES_A_MINUTE`): the operator wants one for every request. */
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/**
 * Maximum number of lines of one kind (same message and code) per minute. Clients can cause most kinds as often as they
 * like; further lines are only counted, and one line reports their number.
 */
export const MAX_LINES_A_MINUTE = 30
/**
 * Maximum number of kinds in memory. There are far fewer messages and codes, so it only guards against messages with
 * variable parts.
 */
const MAX_KINDS = 500

/** Writes JSON lines to standard output. @param now monotonic milliseconds */
export function createLog(
  level: LogLevel,
  destination?: DestinationStream,
  now: () => number = () => performance.now(),
): Log {
  return withLineLimit(jsonLines(level, null, destination), now)
}

/** Creates the log of one of several processes of a node; each line has the number of the process. */
export function createProcessLog(level: LogLevel, process: number): Log {
  return withLineLimit(jsonLines(level, { process }), () => performance.now())
}

function jsonLines(level: LogLevel, base: object | null, destination = standardOutput()): Log {
  return pino(
    {
      level,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
    },
    destination,
  )
}

/** Maximum number of bytes that could not be written yet; they are retried with the next line. */
const MAX_UNWRITTEN_BYTES = 1024 * 1024

/**
 * A closed pipe or a full disk loses lines but must not end the process, as an `error` event without a listener
 * would.
 */
function standardOutput(): DestinationStream {
  const output = pino.destination({ fd: process.stdout.fd, sync: true, maxLength: MAX_UNWRITTEN_BYTES })
  output.on('error', () => {})
  return output
}

/** The lines with the same message and code in the current minute. */
interface LineKind {
  startedAt: number
  written: number
  withheld: number
}

function withLineLimit(lines: Log, now: () => number): Log {
  /** The kinds of the current minute, by message and code. */
  const kinds = new Map<string, LineKind>()
  return {
    debug: (fields, message) => lines.debug(fields, message),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  }

  function write(level: 'info' | 'warn' | 'error') {
    return (fields: object, message: string) => {
      if (mayWrite(message, codeOf(fields))) lines[level](fields, message)
    }
  }

  function mayWrite(message: string, code: string | undefined): boolean {
    const kind = kindOf(code ? `${message} (${code})` : message)
    if (kind.written < MAX_LINES_A_MINUTE) {
      kind.written++
      return true
    }
    kind.withheld++
    return false
  }

  function kindOf(name: string): LineKind {
    const currentKind = kinds.get(name)
    if (currentKind && now() - currentKind.startedAt < MINUTE) return currentKind
    if (currentKind) endMinute(name, currentKind)
    if (kinds.size >= MAX_KINDS) for (const [name, kind] of kinds) endMinute(name, kind)
    const kind = { startedAt: now(), written: 0, withheld: 0 }
    kinds.set(name, kind)
    // Reports the number of withheld lines even if no further line of this kind follows.
    setTimeout(endMinute, MINUTE, name, kind).unref()
    return kind
  }

  function endMinute(name: string, kind: LineKind): void {
    if (kinds.get(name) !== kind) return
    kinds.delete(name)
    if (kind.withheld > 0) lines.warn({ kind: name, lines: kind.withheld }, 'log lines were withheld')
  }
}

/** Each error code is a separate kind, so that a flood of one does not suppress others. */
function codeOf(fields: object): string | undefined {
  return 'code' in fields && typeof fields.code === 'string' ? fields.code : undefined
}

/** Masks an e-mail address as `a***@example.com`: enough for support to recognise it, too little to write to it. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 1 ? '***' : `${address[0]}***${address.slice(at)}`
}
