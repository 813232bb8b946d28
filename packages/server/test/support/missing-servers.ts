import { spawnSync } from 'node:child_process'

/**
 * If a machine lacks PostgreSQL, Redis or a browser, their tests are skipped with that reason. With `CI=true` they fail
 * instead.
 */
export const MUST_HAVE_ALL = process.env.CI === 'true'

/** The value of `skip` for tests that need a program: `reason`, or false if the program is installed or on CI. */
export function skipWithout(isInstalled: boolean, reason: string): string | false {
  return isInstalled || MUST_HAVE_ALL ? false : reason
}

/** The value of `skip` for tests that need a Debian package: the reason, or false if its program runs or on CI. */
export function packageMissing(name: string, [program, ...args]: [string, ...string[]]): string | false {
  return skipWithout(spawnSync(program, args).status === 0, `${name} is not installed here`)
}

/** By default Debian's Python, since no other sees Debian's Python packages. */
export const PYTHON = process.env.KEYWAY_TEST_PYTHON ?? '/usr/bin/python3'
