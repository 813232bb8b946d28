import { spawnSync } from 'node:child_process'

/**
 * If a machine lacks PostgreSQL, Redis or a browser, their tests are skipped with that reason. With `CI=true` they fail
 * instead.
 */
export const MUST_HAVE_ALL = process.env.CI === 'true'

/** The value of `skip` for tests of this server: the reason, or false if they must run. */
export function skipWithout(isThere: boolean, why: string): string | false {
  return isThere || MUST_HAVE_ALL ? false : why
}

/** The value of `skip` for tests of a Debian package: whether a program of it runs. */
export function packageMissing(name: string, [program, ...words]: [string, ...string[]]): string | false {
  return skipWithout(spawnSync(program, words).status === 0, `${name} is not installed here`)
}

/** Debian's Python, since others do not see its packages; or another one with packages of its own. */
export const PYTHON = process.env.KEYWAY_TEST_PYTHON ?? '/usr/bin/python3'
