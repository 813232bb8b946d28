import pino, { type DestinationStream } from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Fields are ids, codes, numbers and masked addresses; never a secret, a token, a URL with a query or a whole address. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** JSON lines on standard output. */
export function createLog(level: LogLevel, destination?: DestinationStream): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: label => ({ level: label }) },
  }
  return destination ? pino(options, destination) : pino(options)
}

/** `a***@example.com`: enough for the person on call to recognise, too little for a stranger to use. */
export function maskAddress(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 1 ? '***' : `${address[0]}***${address.slice(at)}`
}
