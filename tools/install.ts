import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { MUST_HAVE_ALL } from '../packages/server/test/support/missing-servers.ts'
import { createInStaging, installOnce, isInstalled, run, withLock } from './npm-folder.ts'

/** A tool that tests need. `npm ci` in this folder installs all of them. */
export type Tool =
  | 'acorn'
  | 'attw'
  | 'axe-core'
  | 'biome'
  | 'bun'
  | 'chromium'
  | 'openapi-fetch'
  | 'openapi-typescript'
  | 'playwright-core'
  | 'publint'
  | 'recheck'
  | 'rolldown'

interface TestContext {
  skip(message: string): void
}

const FOLDER = import.meta.dirname
const MODULES = join(FOLDER, 'node_modules')
/** Tools that are packages to import rather than programs to run. */
const LIBRARIES: readonly Tool[] = [
  'acorn',
  'axe-core',
  'openapi-fetch',
  'playwright-core',
  'recheck',
  'rolldown',
]
/** The folder of the unpacked browser. It is in node_modules, so that a new installation unpacks the browser again. */
const UNPACKED_BROWSER = 'node_modules/.chromium'

/**
 * The path of a tool, which is installed if it is missing. If the installation fails, the test is skipped or fails; see
 * missing-servers.ts.
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

/** The path of a tool, which is installed if it is missing. @throws Error if it cannot be installed */
export async function requireTool(name: Tool): Promise<string> {
  const path = await findOrInstall(name)
  if (!path) throw new Error(`${name} cannot be installed: run npm ci in tools/.`)
  return path
}

async function findOrInstall(name: Tool): Promise<string | undefined> {
  const installedPath = find(name)
  if (installedPath) return installedPath
  await installOnce(FOLDER)
  if (name === 'chromium' && hasPackedBrowser()) await unpackBrowser()
  return find(name)
}

function find(name: Tool): string | undefined {
  if (name === 'chromium') return browserPath()
  if (!isInstalled(FOLDER)) return undefined
  if (name === 'bun') return bunPath()
  if (LIBRARIES.includes(name)) return ifExists(join(MODULES, name))
  return ifExists(join(MODULES, '.bin', name))
}

/** The path of Bun in its package for this platform, since the main package needs install scripts. */
function bunPath(): string | undefined {
  const scope = join(MODULES, '@oven')
  if (!existsSync(scope)) return undefined
  const candidates = readdirSync(scope).map(name => join(scope, name, 'bin/bun'))
  return candidates.find(path => existsSync(path))
}

/** The path of a browser: preferably the headless shell, which takes a third of the processor time of Chromium. */
function browserPath(): string | undefined {
  const shell = findOnPath('chromium-headless-shell')
  if (shell) return shell
  if (hasPackedBrowser()) return ifExists(join(FOLDER, UNPACKED_BROWSER, 'chromium'))
  return findOnPath('chromium') ?? findOnPath('google-chrome')
}

/** Whether the npm package with a headless shell for Linux is installed. */
function hasPackedBrowser(): boolean {
  if (process.platform !== 'linux' || process.arch !== 'x64') return false
  return isInstalled(FOLDER) && existsSync(join(MODULES, '@sparticuz/chromium/package.json'))
}

/** Unpacks the browser in a staging folder, since its package takes a partially unpacked browser for a complete one. */
async function unpackBrowser(): Promise<void> {
  const unpackScript = "import('@sparticuz/chromium').then(({ default: packed }) => packed.executablePath())"
  await withLock(FOLDER, async () => {
    if (browserPath()) return
    await createInStaging(FOLDER, UNPACKED_BROWSER, async staging => {
      const target = join(staging, '.chromium')
      mkdirSync(target)
      return run(process.execPath, ['-e', unpackScript], FOLDER, { TMPDIR: target })
    })
  })
}

function findOnPath(command: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.map(folder => join(folder, command)).find(path => existsSync(path))
}

function ifExists(path: string): string | undefined {
  return existsSync(path) ? path : undefined
}

if (import.meta.main) await installOnce(FOLDER)
