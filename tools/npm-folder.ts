import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'

/*
 * Installs the packages of a folder with a package-lock.json when they are first needed, possibly by several processes.
 * Packages are unpacked in a staging folder and then moved into place, since an incomplete package cannot be loaded,
 * and an executable that is being written cannot be run (ETXTBSY).
 */

const INSTALL_INPUTS = ['package.json', 'package-lock.json', '.npmrc']
const STAGING_PREFIX = '.installing-'
const FAILURE_MARKER = '.install.failed'
const INSTALL_TIMEOUT_MS = 900_000
/** After this time without an answer from the registry npm repeats the request; its default is five minutes. */
const FETCH_TIMEOUT_MS = 60_000
const INSTALL_ARGUMENTS = ['ci', '--ignore-scripts', '--silent', `--fetch-timeout=${FETCH_TIMEOUT_MS}`]
const RETRY_LOCK_MS = 100

/**
 * Whether all direct dependencies are installed in the versions of package-lock.json. npm writes its list of installed
 * packages last, so that an interrupted `npm ci` does not count.
 */
export function isInstalled(folder: string): boolean {
  const list = join(folder, 'node_modules/.package-lock.json')
  if (!existsSync(list)) return false
  const lockedPackages = packagesOf(join(folder, 'package-lock.json'))
  const installedPackages = packagesOf(list)
  return Object.keys(lockedPackages['']?.dependencies ?? {}).every(name => {
    const path = `node_modules/${name}`
    return (
      installedPackages[path] !== undefined &&
      installedPackages[path].version === lockedPackages[path]?.version
    )
  })
}

type Packages = Record<string, { version?: string; dependencies?: Record<string, string> }>

function packagesOf(lockFile: string): Packages {
  return JSON.parse(readFileSync(lockFile, 'utf8')).packages
}

/**
 * Installs the folder's packages if they are missing. One process installs while the others wait. If it is killed,
 * another process installs; if its installation fails, the waiting processes do not retry.
 *
 * @returns whether the packages are installed
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
  const isDone = await createInStaging(folder, 'node_modules', async stagingFolder => {
    for (const name of INSTALL_INPUTS) {
      if (existsSync(join(folder, name))) await copyFile(join(folder, name), join(stagingFolder, name))
    }
    return (await run('npm', INSTALL_ARGUMENTS, stagingFolder)) && isInstalled(stagingFolder)
  })
  if (!isDone) await writeFile(join(folder, FAILURE_MARKER), '')
}

async function failedSince(folder: string, instant: number): Promise<boolean> {
  const marker = await stat(join(folder, FAILURE_MARKER)).catch(() => null)
  return marker !== null && marker.mtimeMs > instant
}

/**
 * Creates `path` of `folder`, a file or folder, in a staging folder, and moves it into place when it is complete.
 * Requires the folder's lock. The next call removes the staging folder of a killed process.
 *
 * @param make writes `basename(path)` into the staging folder; false if it failed
 */
export async function createInStaging(
  folder: string,
  path: string,
  make: (stagingFolder: string) => Promise<boolean>,
): Promise<boolean> {
  for (const name of await readdir(folder)) {
    if (name.startsWith(STAGING_PREFIX)) await remove(join(folder, name))
  }
  const stagingFolder = await mkdtemp(join(folder, STAGING_PREFIX))
  const isComplete = await make(stagingFolder)
  if (isComplete) {
    const name = path.split('/').at(-1)!
    // Renamed before it is removed, so that no process sees a partially removed folder.
    if (existsSync(join(folder, path))) await rename(join(folder, path), join(stagingFolder, 'previous'))
    await rename(join(stagingFolder, name), join(folder, path))
  }
  await remove(stagingFolder)
  return isComplete
}

/**
 * Runs `work` under an inter-process lock of the folder. It is a lock on a SQLite file, which the operating system
 * releases when its holder ends, so it needs no timeout.
 */
export async function withLock<Result>(folder: string, work: () => Promise<Result>): Promise<Result> {
  using lock = new DatabaseSync(join(folder, '.install.lock'), { timeout: 0 })
  while (!tryLock(lock)) await pause(RETRY_LOCK_MS)
  return await work()
}

function tryLock(lock: DatabaseSync): boolean {
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

/** Runs a command. Resolves with whether it exists and ended with status 0. */
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

/** Removes a folder, and ignores errors: if a killed npm is still writing there, the next call removes it. */
async function remove(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
}
