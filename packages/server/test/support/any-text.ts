import fc from 'fast-check'

/**
 * Strings of any code points, including unassigned ones and lone surrogates. Equals `fc.string({ unit: 'binary' })`,
 * which takes a second to build its table of a million code points.
 */
export function anyText(limits: { maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.array(fc.nat(0x10ffff), limits).map(points => String.fromCodePoint(...points))
}
