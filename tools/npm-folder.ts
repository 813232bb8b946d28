import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'

/*
 * A folder with a package-lock.json whose packages are installed when a process first needs them, beside others that
 * need them too. Packages are unpacked in a folder of their own and moved into place when they are whole: an
 * executable file that is still being written cannot be run (ETXTBSY), and half a package cannot be loaded.
 */

const INPUTS = ['package.json', 'package-lock.json', '.npmrc']
const STAGING = '.installing-'
const FAILED = '.install.failed'
const INSTALL_TIMEOUT_MS = 240_000
const RETRY_LOCK_MS = 100

/**
 * Whether all packages are there, in the versions that package-lock.json names. npm writes its own list last, also when
 * somebody runs `npm ci` there by hand.
 */
export function isInstalled(folder: string): boolean {
  const list = join(folder, 'node_modules/.package-lock.json')
  if (!existsSync(list)) return false
  const wanted = packagesOf(join(folder, 'package-lock.json'))
  const found = packagesOf(list)
  return Object.keys(wanted['']?.dependencies ?? {}).every(name => {
    const path = `node_modules/${name}`
    return found[path] !== undefined && found[path].version === wanted[path]?.version
  })
}

type Packages = Record<string, { version?: string; dependencies?: Record<string, string> }>

function packagesOf(lockFile: string): Packages {
  return JSON.parse(readFileSync(lockFile, 'utf8')).packages
}

/**
 * Installs the folder's packages unless they are there. One process installs while the others wait; when it is
 * killed, one of the others installs; when it fails, those that waited for it do not try again.
 *
 * @returns whether the packages are there
 */
export async function installOnce(folder: string): Promise<boolean> {
  if (isInstalled(folder)) return true
  const startedAt = performance.timeOrigin + performance.now()
  await withLock(folder, async () => {
    if (!isInstalled(folder) && !(await failedSince(folder, startedAt))) await install(folder)
  })
  return isInstalled(folder)
}

async function install(folder: string): Promise<void> {
  const done = await intoPlace(folder, 'node_modules', async staging => {
    for (const name of INPUTS) {
      if (existsSync(join(folder, name))) await copyFile(join(folder, name), join(staging, name))
    }
    return (await run('npm', ['ci', '--ignore-scripts', '--silent'], staging)) && isInstalled(staging)
  })
  if (!done) await writeFile(join(folder, FAILED), '')
}

async function failedSince(folder: string, instant: number): Promise<boolean> {
  const failed = await stat(join(folder, FAILED)).catch(() => null)
  return failed !== null && failed.mtimeMs > instant
}

/**
 * Makes `path` of `folder`, a file or a folder, by work in a staging folder, and moves it into place when the work is
 * done. To be called with the folder's lock held. A killed process leaves its staging folder to the next call.
 *
 * @param make writes `basename(path)` into the staging folder; false when it could not
 */
export async function intoPlace(
  folder: string,
  path: string,
  make: (staging: string) => Promise<boolean>,
): Promise<boolean> {
  for (const name of await readdir(folder)) {
    if (name.startsWith(STAGING)) await remove(join(folder, name))
  }
  const staging = await mkdtemp(join(folder, STAGING))
  const made = await make(staging)
  if (made) {
    const name = path.split('/').at(-1)!
    // What is incomplete there stays whole until the rename: nobody sees a folder half removed.
    if (existsSync(join(folder, path))) await rename(join(folder, path), join(staging, 'previous'))
    await rename(join(staging, name), join(folder, path))
  }
  await remove(staging)
  return made
}

/**
 * Runs `work` while no other process does so for this folder. The lock is one on a SQLite file, which the operating
 * system frees when its holder dies, however it dies: there is no age at which a slow holder is taken for dead.
 */
export async function withLock<Result>(folder: string, work: () => Promise<Result>): Promise<Result> {
  using lock = new DatabaseSync(join(folder, '.install.lock'), { timeout: 0 })
  while (!took(lock)) await pause(RETRY_LOCK_MS)
  return await work()
}

function took(lock: DatabaseSync): boolean {
  try {
    lock.exec('begin exclusive')
    return true
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false
    throw error
  }
}

/** https://www.sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5

/** Whether the command ended with status 0; false where there is no such command. */
export function run(
  command: string,
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
): Promise<boolean> {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: 'ignore',
    timeout: INSTALL_TIMEOUT_MS,
  })
  return new Promise(resolve => {
    child.once('error', () => resolve(false))
    child.once('exit', status => resolve(status === 0))
  })
}

/** A killed npm may still write there: what cannot be removed now is left to the next call. */
async function remove(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
}
