import { randomInt } from 'node:crypto'
import type { Secrets } from '../secrets.ts'
import type { MagicLink } from './magic-link.ts'

/**
 * Number of digits of the code in the mail, which people type where they cannot open the link. The code is independent
 * of the link's token.
 */
export const LOGIN_CODE_DIGITS = 8

const LOGIN_CODE = /^\d{8}$/

export function isLoginCode(text: string): boolean {
  return LOGIN_CODE.test(text)
}

export function generateCode(): string {
  return String(randomInt(10 ** LOGIN_CODE_DIGITS)).padStart(LOGIN_CODE_DIGITS, '0')
}

/** The stored hash of a code. Keyed, since a plain hash of eight digits could be brute-forced from a database dump. */
export function codeHash(secrets: Secrets, linkId: string, code: string): string {
  return secrets.mac('login-code', codeMessage(linkId, code))
}

/** Compares in constant time. */
export function isRightCode(secrets: Secrets, link: MagicLink, code: string): boolean {
  return secrets.verifyMac('login-code', codeMessage(link.id, code), link.codeHash)
}

/** The text that is hashed. It includes the link's id, so that a hash is not valid for another link. */
function codeMessage(linkId: string, code: string): string {
  return `${linkId}:${code}`
}
