/**
 * Builds the single executable `dist/keyway` from the running Node, for its platform. Writes a list of the components,
 * their licences, and checksums beside it. The same commit and the same Node give the same bytes.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readWheelFiles } from '../../packages/python/pack.ts'
import { readSdkFiles } from '../../packages/sdk/pack.ts'
import { GUIDES } from '../../packages/server/src/web/docs/library.ts'
import { bundle, ROOT } from './bundle.ts'
import { components } from './components.ts'
import { licenceTexts } from './licences.ts'

/** Fixes V8's random seed; with a random one the compiled code would differ between builds. */
const FIXED_SEED = '--random-seed=1'

/** The paths of files in the checkout that the service reads at run time (packages/server/src/own-files.ts). */
function ownFiles(): string[] {
  const styles = readdirSync(join(ROOT, 'packages/server/src/web/style'))
  return [
    'packages/server/package.json',
    'packages/server/src/web/script.js',
    ...styles.map(name => `packages/server/src/web/style/${name}`),
    ...GUIDES.map(({ file }) => file),
  ]
}

async function assets(): Promise<Map<string, Buffer>> {
  const addonPath = `prebuilds/${process.platform}-${process.arch}/sodium-native.node`
  return new Map([
    ...ownFiles().map(path => [path, readFileSync(join(ROOT, path))] as const),
    ...withPrefix('sdk', await readSdkFiles()),
    ...withPrefix('python', await readWheelFiles()),
    ['sodium-native.node', await readFile(join(ROOT, 'node_modules/sodium-native', addonPath))] as const,
  ])
}

function withPrefix(folder: string, files: ReadonlyMap<string, Buffer>): [string, Buffer][] {
  return [...files].map(([path, content]) => [`${folder}/${path}`, content])
}

/** Builds the executable. @param folder receives `keyway`, its lists of components and of licences, and `SHA256SUMS` */
export async function buildBinary(folder: string): Promise<void> {
  const workFolder = await mkdtemp(join(tmpdir(), 'keyway-binary-'))
  try {
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'keyway.cdx.json'), components())
    await writeFile(join(folder, 'keyway.licences.txt'), licenceTexts())
    await writeFile(join(workFolder, 'keyway.cjs'), await bundle('tools/binary/main.ts', 'cjs'))
    const config = {
      main: 'keyway.cjs',
      output: join(folder, 'keyway'),
      disableExperimentalSEAWarning: true,
      useCodeCache: true,
      assets: await writeAssets(await assets(), workFolder),
    }
    await writeFile(join(workFolder, 'config.json'), JSON.stringify(config))
    execFileSync(process.execPath, [FIXED_SEED, '--build-sea=config.json'], {
      cwd: workFolder,
      stdio: 'ignore',
    })
    const files = ['keyway', 'keyway.cdx.json', 'keyway.licences.txt']
    await writeFile(join(folder, 'SHA256SUMS'), await checksums(folder, files))
  } finally {
    await rm(workFolder, { recursive: true, force: true })
  }
}

/** Writes the assets as files with numbers for names, since the path of one may be the folder of another. */
async function writeAssets(assetFiles: Map<string, Buffer>, folder: string): Promise<Record<string, string>> {
  const sortedAssets = [...assetFiles].sort(([a], [b]) => (a < b ? -1 : 1))
  const names = sortedAssets.map(async ([path, content], number) => {
    await writeFile(join(folder, `${number}`), content)
    return [path, `${number}`]
  })
  return Object.fromEntries(await Promise.all(names))
}

async function checksums(folder: string, names: string[]): Promise<string> {
  const lines = names.map(async name => {
    const hash = createHash('sha256').update(await readFile(join(folder, name)))
    return `${hash.digest('hex')}  ${name}\n`
  })
  return (await Promise.all(lines)).join('')
}

if (import.meta.main) await buildBinary(resolve(process.argv[2] ?? join(ROOT, 'dist')))
