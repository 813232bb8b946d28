import { nearestName } from '../nearest-name.ts'

/** Maximum number of characters of an unknown field's name in an error message. */
export const MAX_FIELD_NAME_LENGTH = 64
/** Longer names of unknown fields get no suggestion: the search takes time proportional to their length. */
const MAX_SUGGESTED_NAME_LENGTH = 24

/** Suggests the nearest known name for an unknown one, or lists all. */
export function suggestion(name: string, knownNames: readonly string[]): string {
  const nearestKnownName = nearestKnown(name, knownNames)
  return nearestKnownName
    ? `did you mean ${JSON.stringify(nearestKnownName)}?`
    : `known fields: ${knownNames.join(', ')}`
}

/** The known name that an unknown one is likely a misspelling of, or null. */
export function nearestKnown(name: string, knownNames: readonly string[]): string | null {
  if (name.length > MAX_SUGGESTED_NAME_LENGTH) return null
  return nearestName(name, knownNames, Math.max(2, name.length / 3))
}
