import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './serve.ts'

/** The last commit whose nodes neither seal nor open events (docs/decisions/0007-between-nodes.md). */
export const PREVIOUS_COMMIT = '31a63c49bdf10cca00b86679dd500536bf80c6c3'

const UNKNOWN_SETTINGS = ['KEYWAY_KEY_CREATION_LIMITS', 'KEYWAY_EXCHANGE_LIMITS']
const ROOT = join(import.meta.dirname, '../../../..')

export interface PreviousVersion {
  /** Its `keyway` command. */
  launcher: string
  /** Settings that were added later: with one of them the previous version would refuse to start. */
  unknownSettings: readonly string[]
  remove(): void
}

/** Whether the clone has the commit; shallow clones and archives do not. */
export function hasPreviousVersion(): boolean {
  return spawnSync('git', ['cat-file', '-e', `${PREVIOUS_COMMIT}^{commit}`], { cwd: ROOT }).status === 0
}

/** Unpacks the previous version into a folder. It runs with the current dependencies, which its lock file has too. */
export function unpackPreviousVersion(): PreviousVersion {
  const { path, remove } = temporaryFolder()
  const archive = spawnSync('git', ['archive', PREVIOUS_COMMIT, 'package.json', 'packages'], {
    cwd: ROOT,
    maxBuffer: 256 * 1024 * 1024,
  })
  const unpacked = spawnSync('tar', ['-x', '-C', path], { input: archive.stdout })
  if (archive.status !== 0 || unpacked.status !== 0)
    throw new Error(`${PREVIOUS_COMMIT} could not be unpacked: ${archive.stderr}${unpacked.stderr}`)
  linkDependencies(path)
  return { launcher: join(path, 'packages/server/bin/keyway.js'), unknownSettings: UNKNOWN_SETTINGS, remove }
}

/** Links the current dependencies, and the previous version's own packages. */
function linkDependencies(folder: string): void {
  const sourceFolder = join(ROOT, 'node_modules')
  const targetFolder = join(folder, 'node_modules')
  mkdirSync(join(targetFolder, '@keyway'), { recursive: true })
  for (const name of readdirSync(sourceFolder))
    if (name !== '@keyway') symlinkSync(join(sourceFolder, name), join(targetFolder, name))
  for (const name of ['sdk', 'server'])
    symlinkSync(join(folder, 'packages', name), join(targetFolder, '@keyway', name))
}
