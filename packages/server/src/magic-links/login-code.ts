import { randomInt } from 'node:crypto'
import type { Secrets } from '../secrets.ts'
import type { Transaction } from '../store.ts'
import type { MagicLink } from './magic-link.ts'

/** The mail's second secret, independent of the link's: what a person types where the link cannot be opened. */
export const LOGIN_CODE_DIGITS = 8
/** Codes, right or wrong, that may be tried on one link; after them only the link itself works. */
export const MAX_CODE_TRIES = 5

const LOGIN_CODE = /^\d{8}$/

export function isLoginCode(text: string): boolean {
  return LOGIN_CODE.test(text)
}

/** Eight digits, each of the hundred million texts as likely as any other. */
export function generateCode(): string {
  return String(randomInt(10 ** LOGIN_CODE_DIGITS)).padStart(LOGIN_CODE_DIGITS, '0')
}

/** Keyed, since eight digits alone could be tried out from a dump. */
export function codeHash(secrets: Secrets, linkId: string, code: string): string {
  return secrets.mac('login-code', codeMessage(linkId, code))
}

/**
 * Counts the try before looking at the code, so that no number of guesses at once gets more than its five.
 * The count stays, whatever the code was: this is an outcome of the transaction, not a failure.
 */
export async function provesCode(
  tx: Transaction,
  secrets: Secrets,
  link: MagicLink,
  code: string,
): Promise<boolean> {
  const counted = await tx.magicLinks.countCodeTry(link.id, MAX_CODE_TRIES)
  return counted !== null && secrets.verifyMac('login-code', codeMessage(link.id, code), counted.codeHash)
}

/** What the keyed hash covers: a code moved to another link proves nothing. */
function codeMessage(linkId: string, code: string): string {
  return `${linkId}:${code}`
}
