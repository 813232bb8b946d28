/** A value of JSON whose numbers are safe integers, which is all that audit rows contain. */
export type PlainJson =
  | string
  | number
  | boolean
  | null
  | readonly PlainJson[]
  | { readonly [name: string]: PlainJson }

/** The canonical text of a JSON value (RFC 8785): members sorted by UTF-16 code units, no white space. */
export function canonicalJson(value: PlainJson): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (isList(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members = Object.keys(value)
    .sort()
    .map(name => `${JSON.stringify(name)}:${canonicalJson(value[name]!)}`)
  return `{${members.join(',')}}`
}

function isList(value: PlainJson): value is readonly PlainJson[] {
  return Array.isArray(value)
}
