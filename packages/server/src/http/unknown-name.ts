import { nearestName } from '../nearest-name.ts'

/** Maximum number of characters of an unknown field's name in an error message. */
export const MAX_FIELD_NAME_LENGTH = 64
/** Longer names of unknown fields get no suggestion: the search takes time proportional to their length. */
const MAX_SUGGESTED_NAME_LENGTH = 24

/** Suggests the nearest known name for an unknown one, or lists all. */
export function suggestion(name: string, knownNames: readonly string[]): string {
  const isShort = name.length <= MAX_SUGGESTED_NAME_LENGTH
  const nearestKnownName = isShort ? nearestName(name, knownNames, Math.max(2, name.length / 3)) : null
  return nearestKnownName
    ? `did you mean ${JSON.stringify(nearestKnownName)}?`
    : `known fields: ${knownNames.join(', ')}`
}
