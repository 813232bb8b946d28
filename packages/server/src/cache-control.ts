/** Values of `Cache-Control` (RFC 9111 section 5.2.2). */

/** The default of all responses. */
export const NO_STORE = 'no-store'

/** The value for documents that never change under their URL (RFC 8246). */
export const IMMUTABLE = 'public, max-age=31536000, immutable'

/** The value for documents that are the same for all clients and contain no secret. */
export function publicFor(seconds: number): string {
  return `public, max-age=${seconds}`
}
