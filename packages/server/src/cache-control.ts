/** Who may keep an answer (RFC 9111 section 5.2.2), as the value of `Cache-Control`. */

/** Nobody: what every answer says that names nothing else. */
export const NO_STORE = 'no-store'

/** Everybody, for this long: documents that are the same for all and hold no secret. */
export function publicFor(seconds: number): string {
  return `public, max-age=${seconds}`
}
