import { randomInt } from 'node:crypto'
import type { Secrets } from '../secrets.ts'
import type { MagicLink } from './magic-link.ts'

/** The mail's second secret, independent of the link's: what a person types where the link cannot be opened. */
export const LOGIN_CODE_DIGITS = 8

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

/** In constant time. */
export function isRightCode(secrets: Secrets, link: MagicLink, code: string): boolean {
  return secrets.verifyMac('login-code', codeMessage(link.id, code), link.codeHash)
}

/** What the keyed hash covers: a code moved to another link proves nothing. */
function codeMessage(linkId: string, code: string): string {
  return `${linkId}:${code}`
}
