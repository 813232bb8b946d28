import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ShippedPackage {
  name: string
  /** The path of the installed package, relative to the checkout. */
  path: string
  version: string
  /** The hash of the archive: its algorithm, a hyphen, and base64. */
  integrity: string
  /** An SPDX expression. */
  licence: string
}

interface LockedPackage {
  version: string
  integrity: string
  license?: string
  dev?: boolean
  link?: boolean
}

/** The packages that `npm ci --omit=dev` installs, except this project's own, as listed in the lock file. */
export function shippedPackages(): ShippedPackage[] {
  const lock = JSON.parse(readFileSync(join(import.meta.dirname, '../package-lock.json'), 'utf8'))
  return Object.entries<LockedPackage>(lock.packages)
    .filter(([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link)
    .map(([path, { version, integrity, license }]) => ({
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      path,
      version,
      integrity,
      licence: license ?? 'NOASSERTION',
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}
