/**
 * What a machine may lack (PostgreSQL, Redis, a browser) is named and its tests are skipped, except with `CI=true`,
 * where whatever is missing is a failure.
 */
export const MUST_HAVE_ALL = process.env.CI === 'true'

/** For `skip`: why the tests of this server are skipped here, or false where they run, be it to fail. */
export function skipWithout(isThere: boolean, why: string): string | false {
  return isThere || MUST_HAVE_ALL ? false : why
}
