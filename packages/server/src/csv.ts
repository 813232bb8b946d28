/**
 * Characters at the start of a cell that make spreadsheets evaluate it (OWASP, CSV injection), with their full-width
 * forms.
 */
const FORMULA_START = /^[=+\-@\t\r\n＝＋－＠]/

/** A cell of RFC 4180 that spreadsheets do not evaluate as a formula. */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  const text = String(value)
  const neutralized = FORMULA_START.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(neutralized) || neutralized !== text
    ? `"${neutralized.replaceAll('"', '""')}"`
    : neutralized
}
