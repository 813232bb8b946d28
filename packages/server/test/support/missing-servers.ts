/**
 * If a machine lacks PostgreSQL, Redis or a browser, their tests are skipped with that reason. With `CI=true` they fail
 * instead.
 */
export const MUST_HAVE_ALL = process.env.CI === 'true'

/** The value of `skip` for tests of this server: the reason, or false if they must run. */
export function skipWithout(isThere: boolean, why: string): string | false {
  return isThere || MUST_HAVE_ALL ? false : why
}
