/** Millionths of a US dollar, a whole number. Exact up to nine billion dollars. */
export type MicroDollars = number

export const MICROS_PER_DOLLAR = 1_000_000
/** The trial credit of an address's first account, unless the policies set another. */
export const TRIAL_CREDIT: MicroDollars = 2 * MICROS_PER_DOLLAR
export const CURRENCY = 'USD'
/** The largest single amount, so that sums stay exact in a double. */
export const MAX_AMOUNT: MicroDollars = 1_000_000 * MICROS_PER_DOLLAR

/** The largest balance that a credit may result in: a tenth of the largest amount that is exact in a double. */
export const MAX_BALANCE: MicroDollars = 900_000_000 * MICROS_PER_DOLLAR

/** `2000000` becomes `"2.00"`; 2 to 6 decimal places, without trailing zeros beyond the second. */
export function formatMoney(amount: MicroDollars): string {
  const sign = amount < 0 ? '-' : ''
  const digits = String(Math.abs(amount)).padStart(7, '0')
  const decimals = digits.slice(-6).replace(/0{1,4}$/, '')
  return `${sign}${digits.slice(0, -6)}.${decimals}`
}

const AMOUNT_SYNTAX = /^(0|[1-9]\d{0,6})(?:\.(\d{1,6}))?$/

/** Parses a positive decimal with at most 6 places, up to `MAX_AMOUNT`; null for anything else. */
export function parseAmount(text: string): MicroDollars | null {
  const match = AMOUNT_SYNTAX.exec(text)
  if (!match) return null
  const amount = Number(match[1]) * MICROS_PER_DOLLAR + Number((match[2] ?? '').padEnd(6, '0'))
  return amount > 0 && amount <= MAX_AMOUNT ? amount : null
}

/** Like `parseAmount`, but also accepts zero. */
export function parseAmountOrZero(text: string): MicroDollars | null {
  return /^0(?:\.0{1,6})?$/.test(text) ? 0 : parseAmount(text)
}
