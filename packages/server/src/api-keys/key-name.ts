/** Maximum length of a key's name, in code points. */
export const MAX_KEY_NAME_LENGTH = 100

const CONTROL_CHARACTERS = /\p{Cc}/u

/** Such names are refused: in a list, mail or log, a line break or an escape sequence could pass for another text. */
export function hasControlCharacters(name: string): boolean {
  return CONTROL_CHARACTERS.test(name)
}
