/** Maximum length of a key's name, in code points. */
export const MAX_KEY_NAME_LENGTH = 100

const CONTROL_CHARACTERS = /\p{Cc}/u

/** Names that have them are refused: in a list, mail or log, a line break or escape sequence could fake other text. */
export function hasControlCharacters(name: string): boolean {
  return CONTROL_CHARACTERS.test(name)
}
