import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

const ROOT = import.meta.dirname
const DIST = join(ROOT, 'dist')
const EXECUTABLE = 'dist/keyway-agent.js'
/** Import paths of the package, and their modules. */
const ENTRIES = { '.': 'index', './protocol': 'protocol', './node': 'node' }
/** Number of characters of a build's hash: 48 bits. */
const IDENTITY_LENGTH = 12

export interface PackedSdk {
  /** The version of the manifest, with the hash of the build as pre-release part (semver.org, section 9). */
  version: string
  content: Uint8Array<ArrayBuffer>
}

/** The files of the package by path, with the manifest of the checkout. */
export type SdkFiles = ReadonlyMap<string, Buffer>

export async function readSdkFiles(): Promise<SdkFiles> {
  const ownPaths = ['package.json', 'README.md', ...(await builtFiles())]
  const files = ownPaths.map(async (path): Promise<File> => [path, await readFile(join(ROOT, path))])
  return new Map([...(await Promise.all(files)), ...(await webSocketClientFiles())])
}

/**
 * Packs the package as npm installs it from an instance, under a version of its own for each build. Needs no compiler.
 *
 * @param url the instance that serves the package; its command then needs no URL
 */
export async function packSdk(url?: string, sources?: SdkFiles): Promise<PackedSdk> {
  const { manifest, files } = splitManifest(sources ?? (await readSdkFiles()))
  if (url !== undefined) files.set('service.json', Buffer.from(`${JSON.stringify({ url })}\n`))
  const manifestOf = (version: string) => publishedManifest({ ...manifest, version })
  const identity = buildIdentity([...sortedByPath(files), ['package.json', manifestOf(manifest.version)]])
  const version = `${manifest.version}-${identity}`
  return { version, content: await archive(manifestOf(version), files) }
}

/**
 * Packs the package for a registry, under the version of the manifest.
 *
 * @param repository the URL of the source repository, which npm compares with the provenance
 */
export async function packSdkRelease(repository: string): Promise<PackedSdk> {
  const { manifest, files } = splitManifest(await readSdkFiles())
  const releaseManifest = publishedManifest({ ...manifest, repository: { type: 'git', url: repository } })
  return { version: manifest.version, content: await archive(releaseManifest, files) }
}

function splitManifest(sources: SdkFiles): { manifest: { version: string }; files: Map<string, Buffer> } {
  const { 'package.json': manifest, ...files } = Object.fromEntries(sources)
  return { manifest: JSON.parse(manifest!.toString()), files: new Map(Object.entries(files)) }
}

/** Creates the archive of the package. Reproducible: equal files give equal bytes. */
async function archive(manifest: Buffer, files: SdkFiles): Promise<Uint8Array<ArrayBuffer>> {
  const entries = [['package.json', manifest] as const, ...sortedByPath(files)].map(([path, content]) =>
    tarEntry(`package/${path}`, content, path === EXECUTABLE),
  )
  const tar = Buffer.concat([...entries, Buffer.alloc(1024)])
  return new Uint8Array(await promisify(gzip)(tar, { level: 9 }))
}

function sortedByPath(files: SdkFiles): [string, Buffer][] {
  return [...files].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** A hash of the files. Starts with a letter: a pre-release identifier of digits alone would be read as a number. */
function buildIdentity(files: (readonly [string, Buffer])[]): string {
  const hash = createHash('sha256')
  for (const [path, content] of files) hash.update(`${path}\0${content.length}\0`).update(content)
  return `b${hash.digest('hex').slice(0, IDENTITY_LENGTH)}`
}

async function builtFiles(): Promise<string[]> {
  const declarations = await reachableDeclarations()
  const names = (await readdir(DIST, { recursive: true })).map(name => name.replaceAll('\\', '/'))
  return names
    .filter(name => name.endsWith('.js') || declarations.has(name))
    .map(name => `dist/${name}`)
    .sort()
}

/** The declaration files that a compiler reaches from the entries; the package leaves out all others. */
async function reachableDeclarations(): Promise<Set<string>> {
  const reachedNames = new Set(Object.values(ENTRIES).map(module => `${module}.d.ts`))
  // The loop also visits names that it adds to the set.
  for (const name of reachedNames) {
    const text = await readFile(join(DIST, name), 'utf8')
    for (const [, module] of text.matchAll(/(?:from |import\()'(\.{1,2}\/[^']*)\.js'/g))
      reachedNames.add(posix.join(posix.dirname(name), `${module}.d.ts`))
  }
  return reachedNames
}

type File = [path: string, content: NonSharedBuffer]

/** The files of the WebSocket client for platforms without one (`environment.ts`), with its licence. */
async function webSocketClientFiles(): Promise<File[]> {
  const folder = dirname(createRequire(import.meta.url).resolve('ws/package.json'))
  const libraryNames = (await readdir(join(folder, 'lib'))).filter(name => name.endsWith('.js')).sort()
  const names = ['LICENSE', 'index.js', ...libraryNames.map(name => `lib/${name}`)]
  const files = names.map(
    async (name): Promise<File> => [`vendor/ws/${name}`, await readFile(join(folder, name))],
  )
  const { name, version, license, main } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  // Omits "exports", which do not apply to an import by path (`BUNDLED_WS_PATH` in environment.ts).
  const manifest = JSON.stringify({ name, version, license, type: 'commonjs', main }, null, 2)
  return [['vendor/ws/package.json', Buffer.from(`${manifest}\n`)], ...(await Promise.all(files))]
}

/** The published manifest: it refers to `dist`, while the one of the checkout refers to the sources. */
function publishedManifest({ scripts: _, ...manifest }: Record<string, unknown>): Buffer {
  const exportEntries = Object.entries(ENTRIES).map(([name, module]) => [
    name,
    { types: `./dist/${module}.d.ts`, default: `./dist/${module}.js` },
  ])
  const publishedFields = {
    ...manifest,
    main: './dist/index.js',
    types: './dist/index.d.ts',
    // For compilers without support for "exports" (moduleResolution node10).
    typesVersions: { '*': { protocol: ['./dist/protocol.d.ts'], node: ['./dist/node.d.ts'] } },
    exports: { ...Object.fromEntries(exportEntries), './package.json': './package.json' },
    bin: { 'keyway-agent': EXECUTABLE },
    files: ['dist', 'vendor'],
  }
  return Buffer.from(`${JSON.stringify(publishedFields, null, 2)}\n`)
}

const TAR_BLOCK_BYTES = 512

/** One file in the ustar format (POSIX.1-1988), without owner and time. */
function tarEntry(path: string, content: Buffer, executable: boolean): Buffer {
  const header = Buffer.alloc(TAR_BLOCK_BYTES)
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is too long a name for a tar header`)
  header.write(path, 0)
  header.write(executable ? '0000755\0' : '0000644\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${octal(content.length, 11)}\0`, 124)
  header.write(`${octal(0, 11)}\0`, 136)
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  header.write(`${octal(checksum, 6)}\0 `, 148)
  const padding = Buffer.alloc((TAR_BLOCK_BYTES - (content.length % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES)
  return Buffer.concat([header, content, padding])
}

function octal(number: number, digits: number): string {
  return number.toString(8).padStart(digits, '0')
}
