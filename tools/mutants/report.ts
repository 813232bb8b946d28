import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Result } from './run.ts'

interface Equivalent {
  file: string
  mutant: string
  /** Why no test can tell it from the original. */
  reason: string
}

const EQUIVALENT = join(import.meta.dirname, 'equivalent.json')

/** Prints figures by folder and every survivor. @returns the share that was caught, equivalent ones left out */
export function report(files: readonly string[], all: readonly Result[], minutes: number): number {
  const equivalents: Equivalent[] = JSON.parse(readFileSync(EQUIVALENT, 'utf8'))
  const isEquivalent = ({ file, key }: Result) =>
    equivalents.some(each => each.file === file && each.mutant === key)
  const results = all.filter(({ file }) => files.includes(file))
  const survivors = results.filter(result => !isCaught(result) && !isEquivalent(result))
  for (const { file, line, key, outcome } of survivors) console.log(`${outcome}: ${file}:${line} ${key}`)
  for (const { file, mutant } of equivalents) {
    const found = results.find(result => result.file === file && result.key === mutant)
    if (files.includes(file) && (!found || isCaught(found)))
      console.log(`listed as equivalent, but ${found ? 'caught' : 'not there'}: ${file} ${mutant}`)
  }
  const figures = (part: Result[]) => {
    const equivalent = part.filter(result => !isCaught(result) && isEquivalent(result)).length
    const count = (outcome: Result['outcome']) => part.filter(result => result.outcome === outcome).length
    const caught = count('killed') + count('timed out')
    const share = caught / (part.length - equivalent)
    return {
      mutants: part.length,
      killed: count('killed'),
      'timed out': count('timed out'),
      equivalent,
      survived: part.length - caught - equivalent,
      caught: `${(share * 100).toFixed(1)} %`,
      share,
    }
  }
  const byFolder = Map.groupBy(results, ({ file }) => dirname(file).replace('packages/server/src/', ''))
  const rows = [...byFolder].map(([folder, part]) => ({ folder, ...figures(part) }))
  console.table([...rows, { folder: 'all', ...figures([...results]) }].map(({ share: _, ...row }) => row))
  console.log(`${minutes.toFixed(1)} minutes`)
  return figures([...results]).share
}

function isCaught({ outcome }: Result): boolean {
  return outcome === 'killed' || outcome === 'timed out'
}
