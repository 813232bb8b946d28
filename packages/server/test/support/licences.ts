import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../../..')

/** Licences that allow use, change and redistribution, also commercially, without disclosure of source. */
export const ALLOWED_LICENCES = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
])

export interface ShippedPackage {
  name: string
  version: string
  licence: string
}

interface LockedPackage {
  version?: string
  license?: string
  dev?: boolean
  link?: boolean
}

/** The packages that `npm ci --omit=dev` installs, from the lock file, without this project's own. */
export function shippedPackages(): ShippedPackage[] {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  return Object.entries(lock.packages)
    .filter(([path, { dev, link }]) => path.startsWith('node_modules/') && !dev && !link)
    .map(([path, { version, license }]) => ({
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version: version ?? '?',
      licence: license ?? 'unknown',
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The content of docs/licences.md. */
export function licencesDocument(): string {
  const rows = shippedPackages().map(
    ({ name, version, licence }) => `| \`${name}\` | ${version} | ${licence} |`,
  )
  return `# Licences

<!-- Made by \`npm run docs\` from package-lock.json. -->

Keyway is under the Apache License 2.0 (LICENSE). What it is shipped with, \`npm ci --omit=dev\`:

| Package | Version | Licence |
|---|---|---|
${rows.join('\n')}
`
}
