import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Equivalent {
  file: string
  mutant: string
  /** Why no test can distinguish it from the original. */
  reason: string
}

export const EQUIVALENTS: readonly Equivalent[] = JSON.parse(
  readFileSync(join(import.meta.dirname, 'equivalent.json'), 'utf8'),
)
const names = new Set(EQUIVALENTS.map(({ file, mutant }) => `${file} ${mutant}`))

export function isEquivalent({ file, key }: { file: string; key: string }): boolean {
  return names.has(`${file} ${key}`)
}
