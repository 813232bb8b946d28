import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, rm, stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { MUST_HAVE_ALL } from '../packages/server/test/support/missing-servers.ts'

/** What a test may ask for; `npm ci` of this folder brings all of it. */
export type Tool = 'attw' | 'axe-core' | 'biome' | 'bun' | 'chromium' | 'playwright-core' | 'publint'

interface TestContext {
  skip(message: string): void
}

const FOLDER = import.meta.dirname
const MODULES = join(FOLDER, 'node_modules')
const LOCK = join(FOLDER, 'node_modules.lock')
const INSTALL_TIMEOUT_MS = 240_000

/**
 * The path of a tool, installed first when it is missing. Where it cannot be had the test is skipped by name, or
 * fails; see missing-servers.ts.
 *
 * @returns undefined when the test was skipped
 */
export async function tool(t: TestContext, name: Tool): Promise<string | undefined> {
  const path = await findOrInstall(name)
  if (path) return path
  if (MUST_HAVE_ALL) throw new Error(`${name} cannot be installed: run npm ci in tools/.`)
  t.skip(`${name} cannot be had here (npm ci in tools/ failed)`)
  return undefined
}

/** The path of a tool, installed first when it is missing. @throws Error when it cannot be had */
export async function need(name: Tool): Promise<string> {
  const path = await findOrInstall(name)
  if (!path) throw new Error(`${name} cannot be installed: run npm ci in tools/.`)
  return path
}

async function findOrInstall(name: Tool): Promise<string | undefined> {
  if (!find(name)) await install()
  return find(name)
}

function find(name: Tool): string | undefined {
  if (name === 'chromium') return browser()
  if (name === 'bun') return bun()
  if (name === 'axe-core' || name === 'playwright-core') return existing(join(MODULES, name))
  return existing(join(MODULES, '.bin', name))
}

/** The platform's own package: the wrapper's binary appears only when install scripts may run. */
function bun(): string | undefined {
  const scope = join(MODULES, '@oven')
  if (!existsSync(scope)) return undefined
  const found = readdirSync(scope).map(name => join(scope, name, 'bin/bun'))
  return found.find(path => existsSync(path))
}

/** A Chromium without any window takes a third of the processor time of a whole one that hides its windows. */
function browser(): string | undefined {
  return onPath('chromium-headless-shell') ?? packed() ?? onPath('chromium') ?? onPath('google-chrome')
}

/** A headless shell for Linux that comes as an npm package; unpacked by the test that starts it. */
function packed(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  return existing(join(MODULES, '@sparticuz/chromium/package.json')) && '@sparticuz/chromium'
}

function onPath(command: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.map(folder => join(folder, command)).find(path => existsSync(path))
}

function existing(path: string): string | undefined {
  return existsSync(path) ? path : undefined
}

/** Test files run beside each other and would unpack into the same folder; whoever waited finds it done. */
async function install(): Promise<void> {
  await alone(async first => {
    if (first) await npmCi()
  })
}

/** No other process does the same at the same time. `first` is false when one did just before. */
export async function alone<Result>(work: (first: boolean) => Promise<Result>): Promise<Result> {
  const first = await lock()
  try {
    return await work(first)
  } finally {
    await rm(LOCK, { recursive: true, force: true })
  }
}

/** Takes the lock; false when another process had it before and so has installed meanwhile. */
async function lock(): Promise<boolean> {
  for (let waited = false; ; waited = true) {
    try {
      await mkdir(LOCK)
      return !waited
    } catch {
      const age = await stat(LOCK).then(
        ({ mtimeMs }) => performance.timeOrigin + performance.now() - mtimeMs,
        () => 0,
      )
      if (age > INSTALL_TIMEOUT_MS) await rm(LOCK, { recursive: true, force: true })
      await pause(250)
    }
  }
}

function npmCi(): Promise<void> {
  const child = spawn('npm', ['ci', '--ignore-scripts', '--silent'], {
    cwd: FOLDER,
    stdio: 'ignore',
    timeout: INSTALL_TIMEOUT_MS,
  })
  return new Promise(resolve => {
    child.once('error', () => resolve()) // no npm: the caller finds that nothing is there
    child.once('exit', () => resolve())
  })
}

if (import.meta.main) await install()
