import { isIPv4 } from 'node:net'
import { DAY, type Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { prefixOf } from '../network.ts'

/** Maximum number of wrong codes per link. After them only the URL in the mail works. */
export const MAX_CODE_TRIES = 5

/** Length of the sliding window of all limits below. */
export const CODE_WINDOW = DAY

/**
 * Maximum number of wrong codes from unrecognised browsers, over all addresses. The security of codes rests on this
 * limit: a guess succeeds with a probability of 1 in 10^8, so the number of codes that are checked in a year determines
 * the chance of a takeover. SECURITY.md computes it and unit/code-limits.test.ts verifies it. The limit must not grow
 * with successful sign-ins, since attackers can produce those with mailboxes of their own.
 */
export const WRONG_CODES_UNRECOGNISED = 22
/** The part of WRONG_CODES_UNRECOGNISED that one mailbox may use: as many as two links allow. */
export const WRONG_CODES_PER_MAILBOX = 10
/**
 * The parts of WRONG_CODES_UNRECOGNISED that one network may use, by the length of its prefix, so that no network alone
 * exhausts that limit.
 */
export const WRONG_CODES_PER_NETWORK: readonly { ipv4: number | null; ipv6: number; limit: number }[] = [
  { ipv4: 32, ipv6: 64, limit: 10 },
  { ipv4: 24, ipv6: 56, limit: 14 },
  { ipv4: null, ipv6: 48, limit: 18 },
]
/**
 * Maximum number of wrong codes per mailbox from recognised browsers, in which someone signed in to that address
 * before. They are counted separately, so that strangers cannot exhaust this limit and lock people out of their own
 * browsers.
 */
export const WRONG_CODES_RECOGNISED = 5

/** A sign-in code that was compared with the right one and differed, or a user code (RFC 8628) that does not exist. */
export interface WrongCode {
  id: string
  linkId: string
  at: Instant
  /** Keyed hash of the address without its tag. */
  mailbox: string
  /** Whether the browser is recognised: someone signed in to the address in it before. */
  isReturning: boolean
  /** The networks that contain the client's address, in the order of WRONG_CODES_PER_NETWORK. */
  networks: readonly string[]
}

export type CodeAttempt = Pick<WrongCode, 'mailbox' | 'isReturning' | 'networks'>

export function codeNetworks(address: string): string[] {
  const isV4 = isIPv4(address)
  const prefixLengths = WRONG_CODES_PER_NETWORK.map(({ ipv4, ipv6 }) => (isV4 ? ipv4 : ipv6))
  return prefixLengths.filter(bits => bits !== null).map(bits => prefixOf(address, bits))
}

/**
 * When a code may be checked again; null if it may be checked now.
 *
 * @param wrongCodes the wrong codes within CODE_WINDOW: all from unrecognised browsers, and those from recognised ones
 *   for the mailbox
 */
export function codesRefusedUntil(attempt: CodeAttempt, wrongCodes: readonly WrongCode[]): Instant | null {
  const endTimes = boundsOf(attempt).flatMap(({ limit, counts }) => {
    const times = wrongCodes.filter(counts).map(({ at }) => at)
    return times.length < limit ? [] : [times.sort((a, b) => a - b).at(-limit)! + CODE_WINDOW]
  })
  return endTimes.length > 0 ? Math.max(...endTimes) : null
}

export function isFromUnrecognisedBrowser({ isReturning }: WrongCode): boolean {
  return !isReturning
}

/** A limit of wrong codes within CODE_WINDOW. */
interface Bound {
  limit: number
  counts(wrong: WrongCode): boolean
}

function boundsOf({ mailbox, isReturning, networks }: CodeAttempt): Bound[] {
  if (isReturning) {
    return [
      {
        limit: WRONG_CODES_RECOGNISED,
        counts: wrong => !isFromUnrecognisedBrowser(wrong) && wrong.mailbox === mailbox,
      },
    ]
  }
  return [
    { limit: WRONG_CODES_UNRECOGNISED, counts: isFromUnrecognisedBrowser },
    {
      limit: WRONG_CODES_PER_MAILBOX,
      counts: wrong => isFromUnrecognisedBrowser(wrong) && wrong.mailbox === mailbox,
    },
    ...networks.map((network, level) => ({
      limit: WRONG_CODES_PER_NETWORK[level]!.limit,
      counts: (wrong: WrongCode) => isFromUnrecognisedBrowser(wrong) && wrong.networks.includes(network),
    })),
  ]
}

export interface CodeRefusal {
  /** Milliseconds until codes may be checked again, or until the link has expired. */
  wait: number
  window?: 'day'
}

export function codeRefusalError({ wait, window }: CodeRefusal): KeywayError {
  const retryAfter = Math.max(1, Math.ceil(wait / 1000))
  const detail =
    'Too many wrong codes were typed, so none is checked for now. Use the link in the mail: it works.'
  return new KeywayError('rate_limited', detail, { retryAfter, window })
}
