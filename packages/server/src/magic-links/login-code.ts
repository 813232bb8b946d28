import { randomInt } from 'node:crypto'
import type { Secrets } from '../secrets.ts'
import type { MagicLink } from './magic-link.ts'

/** The code in the mail, independent of the link's token: typed where the link cannot be opened. */
export const LOGIN_CODE_DIGITS = 8

const LOGIN_CODE = /^\d{8}$/

export function isLoginCode(text: string): boolean {
  return LOGIN_CODE.test(text)
}

/** Eight digits, uniformly distributed. */
export function generateCode(): string {
  return String(randomInt(10 ** LOGIN_CODE_DIGITS)).padStart(LOGIN_CODE_DIGITS, '0')
}

/** Keyed, since a plain hash of eight digits could be brute-forced from a database dump. */
export function codeHash(secrets: Secrets, linkId: string, code: string): string {
  return secrets.mac('login-code', codeMessage(linkId, code))
}

/** Compares in constant time. */
export function isRightCode(secrets: Secrets, link: MagicLink, code: string): boolean {
  return secrets.verifyMac('login-code', codeMessage(link.id, code), link.codeHash)
}

/** Includes the link's id, so that a hash is not valid for another link. */
function codeMessage(linkId: string, code: string): string {
  return `${linkId}:${code}`
}
