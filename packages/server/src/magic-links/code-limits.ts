import { isIPv4 } from 'node:net'
import { DAY, type Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { prefixOf } from '../network.ts'

/** Wrong codes on one link; after them only the link itself works. */
export const MAX_CODE_TRIES = 5

/** Every bound below counts wrong codes in any stretch of time of this length. */
export const CODE_WINDOW = DAY

/**
 * Wrong codes that strangers may type, for all addresses together: the bound on which everything rests. A guess hits
 * with 1 in 10^8, so what is checked in a year, and nothing else, is the chance of a takeover; SECURITY.md computes
 * it and unit/code-limits.test.ts keeps it true. It does not grow with the service, since success can be bought with
 * mailboxes of one's own.
 */
export const WRONG_CODES_OF_STRANGERS = 22
/** Of those for one mailbox: two links' worth. */
export const WRONG_CODES_PER_MAILBOX = 10
/** Of those from one network, from the narrowest to the widest, so that none alone uses up what all have. */
export const WRONG_CODES_PER_NETWORK: readonly { ipv4: number | null; ipv6: number; limit: number }[] = [
  { ipv4: 32, ipv6: 64, limit: 10 },
  { ipv4: 24, ipv6: 56, limit: 14 },
  { ipv4: null, ipv6: 48, limit: 18 },
]
/**
 * Wrong codes per mailbox in browsers in which someone signed in to that very address before. They count apart:
 * strangers cannot reach this bound, so they cannot take codes from people in their own browsers either.
 */
export const WRONG_CODES_OF_RETURNING = 5

/** A wrong code that was checked. */
export interface WrongCode {
  id: string
  linkId: string
  at: Instant
  /** Keyed hash of the address without its tag. */
  mailbox: string
  /** Whether it was typed in a browser in which someone signed in to the address before. */
  isReturning: boolean
  /** The networks around the client, in the order of WRONG_CODES_PER_NETWORK. */
  networks: readonly string[]
}

export type CodeAttempt = Pick<WrongCode, 'mailbox' | 'isReturning' | 'networks'>

/** The networks under which a client's wrong codes count. */
export function codeNetworks(address: string): string[] {
  const isNarrow = isIPv4(address)
  const widths = WRONG_CODES_PER_NETWORK.map(({ ipv4, ipv6 }) => (isNarrow ? ipv4 : ipv6))
  return widths.filter(bits => bits !== null).map(bits => prefixOf(address, bits))
}

/**
 * When a code may be checked again; null: now.
 *
 * @param wrong what was wrong within CODE_WINDOW: of strangers all, of returning browsers those of the mailbox
 */
export function codesRefusedUntil(attempt: CodeAttempt, wrong: readonly WrongCode[]): Instant | null {
  const waits = boundsOf(attempt).map(({ limit, counts }) => {
    const times = wrong.filter(counts).map(({ at }) => at)
    return times.length < limit ? null : times.sort((a, b) => a - b).at(-limit)! + CODE_WINDOW
  })
  const ends = waits.filter(end => end !== null)
  return ends.length > 0 ? Math.max(...ends) : null
}

export function isOfStranger({ isReturning }: WrongCode): boolean {
  return !isReturning
}

interface Bound {
  limit: number
  counts(wrong: WrongCode): boolean
}

function boundsOf({ mailbox, isReturning, networks }: CodeAttempt): Bound[] {
  if (isReturning) {
    return [
      {
        limit: WRONG_CODES_OF_RETURNING,
        counts: wrong => !isOfStranger(wrong) && wrong.mailbox === mailbox,
      },
    ]
  }
  return [
    { limit: WRONG_CODES_OF_STRANGERS, counts: isOfStranger },
    { limit: WRONG_CODES_PER_MAILBOX, counts: wrong => isOfStranger(wrong) && wrong.mailbox === mailbox },
    ...networks.map((network, level) => ({
      limit: WRONG_CODES_PER_NETWORK[level]!.limit,
      counts: (wrong: WrongCode) => isOfStranger(wrong) && wrong.networks.includes(network),
    })),
  ]
}

/** Why a code is not checked. */
export interface CodeRefusal {
  /** Milliseconds until codes may be checked again, or until the link has expired. */
  wait: number
  window?: 'day'
}

export function codesRefused({ wait, window }: CodeRefusal): KeywayError {
  const retryAfter = Math.max(1, Math.ceil(wait / 1000))
  const detail =
    'Too many wrong codes were typed, so none is checked for now. Use the link in the mail: it works.'
  return new KeywayError('rate_limited', detail, { retryAfter, window })
}
