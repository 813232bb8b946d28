import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { installOnce } from '../../../../tools/npm-folder.ts'
import { MUST_HAVE_ALL } from '../support/missing-servers.ts'
import { type RunningProgram, startProgram } from '../support/programs.ts'

export const EXAMPLES_FOLDER = join(import.meta.dirname, '../../../../examples')

/** Installs the packages of an example; returns false if that failed and the test was skipped. */
export async function installExample(t: TestContext, name: string): Promise<boolean> {
  if (await installOnce(join(EXAMPLES_FOLDER, name))) return true
  if (MUST_HAVE_ALL) throw new Error(`npm ci failed in examples/${name}`)
  t.skip(`the packages of examples/${name} cannot be installed here`)
  return false
}

/** Starts `examples/NAME/FILE` with this Node. */
export function startExample(
  t: TestContext,
  [name, file]: [string, string],
  env: Record<string, string>,
): Promise<RunningProgram> {
  return startProgram(t, [process.execPath, join(EXAMPLES_FOLDER, name, file)], env, /Listening on/)
}
