import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutantsOf } from './operators.ts'
import { ROOT } from './run-test.ts'
import { sampleBySeed } from './sample.ts'

export interface Equivalent {
  file: string
  mutant: string
  /** Why no test can distinguish it from the original. */
  reason: string
}

export const EQUIVALENTS: readonly Equivalent[] = JSON.parse(
  readFileSync(join(import.meta.dirname, 'equivalent.json'), 'utf8'),
)
const nameOf = ({ file, mutant }: Equivalent) => `${file} ${mutant}`
const names = new Set(EQUIVALENTS.map(nameOf))

export function isEquivalent({ file, key }: { file: string; key: string }): boolean {
  return names.has(`${file} ${key}`)
}

export function drawEquivalents(count: number, seed: string): Equivalent[] {
  return sampleBySeed(EQUIVALENTS, nameOf, count, seed)
}

/** Prints the drawn entries, each with the line that it changes. */
export function printDrawnEquivalents(count: number, seed: string): void {
  for (const [index, { file, mutant, reason }] of drawEquivalents(count, seed).entries()) {
    const source = readFileSync(join(ROOT, file), 'utf8')
    const line = mutantsOf(source).find(({ key }) => key === mutant)?.line
    console.log(`${index + 1}. ${file}:${line ?? 'not there'}`)
    if (line) console.log(`   ${source.split('\n')[line - 1]!.trim()}`)
    console.log(`   ${mutant}\n   ${reason}\n`)
  }
}
