declare const canonical: unique symbol
/** An address in canonical form, used as identity, rate-limit key and envelope recipient alike. */
export type EmailAddress = string & { readonly [canonical]: true }

/** RFC 5321 section 4.5.3.1.3 limits a path in angle brackets to 256 characters, which leaves 254 for the address. */
export const MAX_ADDRESS_LENGTH = 254
const MAX_LOCAL_PART_LENGTH = 64

/** RFC 5321's dot-string without `!` and `%`, which old relays treat as source routes (RFC 5321, appendix F.2). */
const LOCAL_PART = /^[a-z0-9#$&'*+/=?^_`{|}~-]+(?:\.[a-z0-9#$&'*+/=?^_`{|}~-]+)*$/
/** Start of an encoded word (RFC 2047). Mailers decode it, and it may contain another address. */
const ENCODED_WORD = '=?'
const WHITE_SPACE = new Set(' \t\r\n')
const DOMAIN_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The canonical form of exactly one plain ASCII `local@domain`, or null.
 *
 * The input may only differ in surrounding white space and in the case of ASCII letters: in other services, Unicode
 * case folding has merged different addresses into one account. Rare forms whose recipient differs between mailers are
 * refused (quotes, comments, address literals, routes, encoded words). An internationalised domain must be in its
 * `xn--` form.
 */
export function parseEmailAddress(input: string): EmailAddress | null {
  if (input.length > MAX_ADDRESS_LENGTH + 64) return null
  const address = trimSpace(input).replace(/[A-Z]/g, letter => letter.toLowerCase())
  const [local = '', domain = '', ...rest] = address.split('@')
  if (rest.length > 0 || address.length > MAX_ADDRESS_LENGTH) return null
  if (local.length > MAX_LOCAL_PART_LENGTH || !LOCAL_PART.test(local) || !isDomain(domain)) return null
  if (local.includes(ENCODED_WORD)) return null
  return address as EmailAddress
}

/** Removes ASCII white space only, unlike `trim`. A regular expression anchored at the end takes quadratic time. */
function trimSpace(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && WHITE_SPACE.has(text[start]!)) start++
  while (end > start && WHITE_SPACE.has(text[end - 1]!)) end--
  return text.slice(start, end)
}

/**
 * The address without its `+tag`, for rate limits only: almost everywhere mail to `a+x@` arrives at `a@`. Accounts
 * are bound to the full address.
 */
export function withoutTag(email: EmailAddress): EmailAddress {
  return email.replace(/^([^+@]+)\+[^@]*@/, '$1@') as EmailAddress
}

function isDomain(domain: string): boolean {
  const labels = domain.split('.')
  const topLevelDomain = labels.at(-1)!
  return (
    labels.length > 1 &&
    labels.every(label => DOMAIN_LABEL.test(label)) &&
    /^(?:[a-z]{2,63}|xn--[a-z0-9-]+)$/.test(topLevelDomain)
  )
}
