import pino, { type DestinationStream } from 'pino'
import { MINUTE } from './clock.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/**
 * Fields are ids, codes, numbers and masked addresses; never a secret, a token, a URL with a query or a whole address.
 * A message is a constant: what differs from line to line is a field.
 */
export interface Log {
  /** Without a bound: whoever sets the level asks for every request. */
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/**
 * Lines of one kind in a minute. Most kinds can be caused from outside, as often as a stranger likes: those beyond
 * are counted, and one line tells how many there were.
 */
export const MAX_LINES_A_MINUTE = 30
/** Kinds are the program's own messages and codes; this is only so that no mistake makes them endless. */
const MAX_KINDS = 500

/** JSON lines on standard output. @param now milliseconds that only rise */
export function createLog(
  level: LogLevel,
  destination?: DestinationStream,
  now: () => number = () => performance.now(),
): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: label => ({ level: label }) },
  }
  return bounded(pino(options, destination ?? standardOutput()), now)
}

/** Lines that cannot be written now are kept up to this many bytes, and tried again with the next one. */
const MAX_UNWRITTEN_BYTES = 1024 * 1024

/** A reader that went away or a full disk costs lines, and never the process: an error without a listener would. */
function standardOutput(): DestinationStream {
  const output = pino.destination({ fd: process.stdout.fd, sync: true, maxLength: MAX_UNWRITTEN_BYTES })
  output.on('error', () => {})
  return output
}

interface Kind {
  since: number
  written: number
  withheld: number
}

function bounded(lines: Log, now: () => number): Log {
  const kinds = new Map<string, Kind>()
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

  function kindOf(name: string): Kind {
    const found = kinds.get(name)
    if (found && now() - found.since < MINUTE) return found
    if (found) close(name, found)
    if (kinds.size >= MAX_KINDS) for (const [each, kind] of kinds) close(each, kind)
    const kind = { since: now(), written: 0, withheld: 0 }
    kinds.set(name, kind)
    // Told also when no further line of the kind comes.
    setTimeout(close, MINUTE, name, kind).unref()
    return kind
  }

  function close(name: string, kind: Kind): void {
    if (kinds.get(name) !== kind) return
    kinds.delete(name)
    if (kind.withheld > 0) lines.warn({ kind: name, lines: kind.withheld }, 'log lines were withheld')
  }
}

/** Refusals of one code are a kind of their own: a flood of one hides none of the others. */
function codeOf(fields: object): string | undefined {
  return 'code' in fields && typeof fields.code === 'string' ? fields.code : undefined
}

/** `a***@example.com`: enough for the person on call to recognise, too little for a stranger to use. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 1 ? '***' : `${address[0]}***${address.slice(at)}`
}
