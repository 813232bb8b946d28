import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './bundle.ts'

interface LockedPackage {
  version: string
  integrity?: string
  license?: string
  dev?: boolean
  devOptional?: boolean
}

/**
 * The software bill of materials of the single executable (CycloneDX 1.6): the packages of package-lock.json without
 * those for development, and the running Node with the libraries in it. It has no time and no random number, so that
 * equal inputs give equal documents. `npm sbom` is not used, since it leaves out packages that a development tool needs
 * too.
 */
export function components(): string {
  const { version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name: 'keyway', version, licenses: licences(license) } },
    components: [...packageComponents(), nodeComponent()],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function packageComponents(): object[] {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  return Object.entries<LockedPackage>(lock.packages)
    .filter(([path, { dev, devOptional }]) => path.includes('node_modules/') && !dev && !devOptional)
    .filter(([, { integrity }]) => integrity) // a workspace has none: it is this program
    .map(([path, { version, integrity, license }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      const [, sha512] = /^sha512-(\S+)$/.exec(integrity!)!
      return {
        type: 'library',
        name,
        version,
        purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
        hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512!, 'base64').toString('hex') }],
        licenses: licences(license),
      }
    })
}

function nodeComponent(): object {
  const { node: version, ...libraries } = process.versions
  return {
    type: 'platform',
    name: 'Node.js',
    version,
    purl: `pkg:generic/node@${version}`,
    hashes: [
      { alg: 'SHA-256', content: createHash('sha256').update(readFileSync(process.execPath)).digest('hex') },
    ],
    components: Object.entries(libraries).map(([name, version]) => ({ type: 'library', name, version })),
  }
}

function licences(expression: string | undefined): object[] {
  return expression ? [{ expression }] : []
}
