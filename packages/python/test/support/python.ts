import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PYTHON, packageMissing } from '../../../server/test/support/missing-servers.ts'

export const ROOT = join(import.meta.dirname, '../..')
/** The value of `skip` for tests that run the package. */
export const noPython = packageMissing('python3-websockets or python3-httpx', [
  PYTHON,
  '-c',
  'import websockets, httpx, cryptography',
])
/** Python writes no compiled files next to the sources, and pip uses no network. */
const PYTHON_ENVIRONMENT = {
  PYTHONDONTWRITEBYTECODE: '1',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  PIP_NO_INDEX: '1',
}
const MAX_OUTPUT = 10_000_000

/** The environment of this process without settings of the service and of Python. */
export function environment(additional: Record<string, string> = {}): NodeJS.ProcessEnv {
  const inheritedVariables = Object.entries(process.env).filter(
    ([name]) => !/^(KEYWAY_|PYTHON|PIP_|VIRTUAL_ENV)/.test(name),
  )
  return { ...Object.fromEntries(inheritedVariables), ...PYTHON_ENVIRONMENT, ...additional }
}

/** Runs Debian's Python in the folder of the package; rejects with its output. */
export async function python(args: string[], env: Record<string, string> = {}): Promise<string> {
  const options = { cwd: ROOT, env: environment(env), maxBuffer: MAX_OUTPUT }
  const pendingRun = promisify(execFile)(PYTHON, args, options)
  const { stdout } = await pendingRun.catch(({ message, stdout, stderr }) => {
    throw new Error(`${message}\n${stdout}${stderr}`)
  })
  return stdout
}

/** Creates a virtual environment that sees Debian's packages. Returns the folder of its programs. */
export async function virtualEnvironment(t: { after(fn: () => void): void }): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-python-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  await python(['-m', 'venv', '--system-site-packages', folder])
  return join(folder, 'bin')
}
