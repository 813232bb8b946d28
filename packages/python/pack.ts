import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type StoredFile, storedZip } from './zip.ts'

/*
 * Builds the wheel (PyPA binary distribution format 1.0) as pip installs it. Needs neither Python nor the network,
 * since every Keyway instance builds and serves it. The same sources give the same bytes on every instance.
 */

const ROOT = import.meta.dirname
const SOURCES = join(ROOT, 'src')
const README = 'README.md'
/** Number of hexadecimal digits of a build's hash. */
const IDENTITY_LENGTH = 12

export interface Wheel {
  /** `keyway-<version>-py3-none-any.whl`. */
  name: string
  /** The package's version, followed by the hash of the build as local version identifier. */
  version: string
  content: Buffer
}

/** The files that the wheel is made of: the modules by their path below `src`, and `README.md`. */
export type WheelFiles = ReadonlyMap<string, Buffer>

export async function readWheelFiles(): Promise<WheelFiles> {
  const names = await readdir(SOURCES, { recursive: true })
  const paths = names
    .map(name => name.replaceAll('\\', '/'))
    .filter(name => name.endsWith('.py') || name.endsWith('/py.typed'))
    .sort()
  const modules = paths.map(async path => [path, await readFile(join(SOURCES, path))] as const)
  return new Map([[README, await readFile(join(ROOT, README))], ...(await Promise.all(modules))])
}

/** Builds the wheel; `sources` are by default the files of this folder. */
export async function packWheel(sources?: WheelFiles): Promise<Wheel> {
  const wheelFiles = sources ?? (await readWheelFiles())
  const readme = wheelFiles.get(README)!.toString()
  const files = [...wheelFiles]
    .map(([path, content]) => ({ path, content }))
    .filter(({ path }) => path !== README)
  const release = releaseVersion(files)
  const version = `${release}+${buildIdentity([...files, { path: 'METADATA', content: Buffer.from(metadata(release, readme)) }])}`
  const distInfo = `keyway-${version}.dist-info`
  const packagedFiles = [
    ...files.map(file =>
      file.path === VERSION_FILE ? { ...file, content: versionFile(file, release, version) } : file,
    ),
    { path: `${distInfo}/METADATA`, content: Buffer.from(metadata(version, readme)) },
    { path: `${distInfo}/WHEEL`, content: Buffer.from(WHEEL) },
  ]
  const record = `${distInfo}/RECORD`
  const lines = packagedFiles.map(
    ({ path, content }) => `${path},sha256=${sha256(content)},${content.length}`,
  )
  const recordFile = { path: record, content: Buffer.from(`${[...lines, `${record},,`].join('\n')}\n`) }
  const name = `keyway-${version}-py3-none-any.whl`
  return { name, version, content: storedZip([...packagedFiles, recordFile]) }
}

const VERSION_FILE = 'keyway/_version.py'

const WHEEL = `Wheel-Version: 1.0
Generator: keyway
Root-Is-Purelib: true
Tag: py3-none-any
`

/** The package's metadata (core metadata 2.1). The minimum versions of its dependencies are those of Debian 12. */
function metadata(version: string, readme: string): string {
  return `Metadata-Version: 2.1
Name: keyway
Version: ${version}
Summary: Client for Keyway: agents that stay connected, the HTTP API, token verification
License: Apache-2.0
Keywords: keyway,api-keys,websocket,agent,passwordless
Classifier: Framework :: AsyncIO
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.10
Requires-Dist: httpx>=0.23.3
Requires-Dist: websockets>=10.4
Provides-Extra: verify
Requires-Dist: cryptography>=38; extra == "verify"
Description-Content-Type: text/markdown

${readme}`
}

function releaseVersion(files: StoredFile[]): string {
  const source = files.find(file => file.path === VERSION_FILE)?.content.toString() ?? ''
  const [, release] = /^VERSION = "(\d+\.\d+\.\d+)"$/m.exec(source) ?? []
  if (!release) throw new Error(`${VERSION_FILE} has no VERSION`)
  return release
}

function versionFile({ content }: StoredFile, release: string, version: string): Buffer {
  return Buffer.from(content.toString().replace(`"${release}"`, `"${version}"`))
}

/** A hash of the content. It starts with a letter, since a version part of digits alone would be read as a number. */
function buildIdentity(files: StoredFile[]): string {
  const hash = createHash('sha256')
  for (const { path, content } of files) hash.update(`${path}\0${content.length}\0`).update(content)
  return `b${hash.digest('hex').slice(0, IDENTITY_LENGTH)}`
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64url')
}
