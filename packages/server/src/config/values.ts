import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { type MicroDollars, parseAmountOrZero } from '../billing/money.ts'
import { parseCidr } from '../network.ts'
import { Mistake } from './mistakes.ts'

/** Parses the text of a setting. @throws Mistake, whose message never contains the text of a secret */
export type Parser<T> = (text: string) => T

export function oneOf<const T extends string>(...allowed: T[]): Parser<T> {
  return text => {
    const value = allowed.find(allowedValue => allowedValue === text)
    if (value === undefined)
      throw new Mistake(`must be one of ${allowed.join(', ')}, not ${JSON.stringify(text)}`)
    return value
  }
}

const trueOrFalse = oneOf('true', 'false')
export const flag: Parser<boolean> = text => trueOrFalse(text) === 'true'

export function integer(least: number, most: number): Parser<number> {
  return text => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new Mistake(`must be a whole number from ${least} to ${most}, not ${JSON.stringify(text)}`)
    return value
  }
}

const processCount = integer(1, 256)
/** A number of processes, or `auto`: one for each core, or one with SQLite. */
export const processes: Parser<number | 'auto'> = text => (text === 'auto' ? text : processCount(text))

/** With port 0 the system picks a free port. */
export const port = integer(0, 65535)

export const host: Parser<string> = text => {
  const withoutBrackets = text.replace(/^\[(.*)\]$/, '$1')
  if (isIP(withoutBrackets) || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(withoutBrackets))
    return withoutBrackets
  throw new Mistake(`must be an address or a host name to listen on, not ${JSON.stringify(text)}`)
}

const MIN_TOKEN_LENGTH = 16

/** A token of at least 16 of the characters that Bearer tokens may have (RFC 6750 section 2.1). */
export const bearerToken: Parser<string> = text => {
  if (text.length >= MIN_TOKEN_LENGTH && /^[A-Za-z0-9\-._~+/]+=*$/.test(text)) return text
  throw new Mistake(`must be at least ${MIN_TOKEN_LENGTH} characters of A-Z a-z 0-9 - . _ ~ + /`)
}

/** Parses an amount in dollars, or 0, to micro-dollars. */
export const amountOrZero: Parser<MicroDollars> = text => {
  const amount = parseAmountOrZero(text)
  if (amount !== null) return amount
  throw new Mistake(`must be an amount in dollars with at most 6 decimal places, not ${JSON.stringify(text)}`)
}

export const directory: Parser<string> = text => resolve(text)

export function list<T>(item: Parser<T>): Parser<T[]> {
  return text =>
    text
      .split(',')
      .map(part => part.trim())
      .filter(Boolean)
      .map(item)
}

export const cidr: Parser<string> = text => {
  const canonicalCidr = parseCidr(text)
  if (canonicalCidr) return canonicalCidr
  throw new Mistake(`must list addresses or CIDRs whose host bits are zero, not ${JSON.stringify(text)}`)
}
