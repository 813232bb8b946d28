/** Code points that a key's name may have. */
export const MAX_KEY_NAME_LENGTH = 100

const CONTROL_CHARACTERS = /\p{Cc}/u

/** A name is shown in lists, mails and logs, where a line break or an escape would be read as something else. */
export function hasControlCharacters(name: string): boolean {
  return CONTROL_CHARACTERS.test(name)
}
