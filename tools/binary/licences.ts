import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './bundle.ts'
import { packagesInside } from './components.ts'

interface Component {
  name: string
  version: string
  /** Contains the component's package.json and licence. */
  folder: string
}

const LICENCE_FILE = /^(licen[cs]e|notice)(\.md|\.txt)?$/i
/**
 * The folder with licence texts of packages that come without their own, or without that of an included library.
 * docs/decisions/0039-single-executable.md says where the texts are from.
 */
const MISSING_TEXTS = join(import.meta.dirname, 'licences')

/** The licences of Keyway, of Node and of each package, which must accompany every copy of the single executable. */
export function licenceTexts(): string {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const components = [
    { name: 'keyway', version, folder: ROOT },
    { name: 'Node.js', version: process.versions.node, folder: nodeFolder() },
    ...packagesInside().map(({ name, version, path }) => ({ name, version, folder: join(ROOT, path) })),
  ]
  return components.map(licenceText).join('\n')
}

/** The package with Node for this platform, which the package `node` installs. It has Node's own LICENSE. */
function nodeFolder(): string {
  const pattern = `node_modules/node/node_modules/node*-${process.platform}-${process.arch}`
  const [folder] = globSync(pattern, { cwd: ROOT })
  if (!folder) throw new Error(`Node's licence is missing: no folder ${pattern}; run npm ci`)
  return join(ROOT, folder)
}

/** A component's licence under its name. @throws Error if it has none, or another version is installed */
export function licenceText({ name, version, folder }: Component): string {
  const installedVersion = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version
  if (installedVersion !== version)
    throw new Error(`${name} ${version} is used, but ${installedVersion} is installed`)
  const files = readdirSync(folder).filter(file => LICENCE_FILE.test(file))
  const paths = [...files.sort().map(file => join(folder, file)), join(MISSING_TEXTS, `${name}.txt`)]
  const texts = paths
    .filter(path => existsSync(path))
    .map(path => `${readFileSync(path, 'utf8').trimEnd()}\n`)
  if (!texts.length) throw new Error(`${name} ${version} has no licence text: put it into ${paths.at(-1)}`)
  return [`==== ${name} ${version} ====\n`, ...texts].join('\n')
}
