import { shippedPackages } from '../../../../tools/shipped-packages.ts'

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
