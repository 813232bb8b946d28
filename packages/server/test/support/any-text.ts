import fc from 'fast-check'

/**
 * Any code points, unassigned ones and lone surrogates too. What `fc.string({ unit: 'binary' })` promises, which first
 * makes a table of all million of them, for a second.
 */
export function anyText(limits: { maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.array(fc.nat(0x10ffff), limits).map(points => String.fromCodePoint(...points))
}
