import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ORIGINAL } from './copy.ts'
import { isCaught, type Result } from './results.ts'
import type { Candidate } from './run.ts'

interface Equivalent {
  file: string
  mutant: string
  /** Why no test can distinguish it from the original. */
  reason: string
}

export interface RunSummary {
  all: readonly Candidate[]
  /** Results of the selected mutants. */
  found: readonly Result[]
  minutes: number
  seed: string
  write: boolean
  command: string
}

const EQUIVALENT = join(import.meta.dirname, 'equivalent.json')
const WRITTEN = join(ORIGINAL, 'tools/mutants/results.md')

/**
 * Prints statistics by folder and every survivor. @returns the fraction of detected mutants, without equivalent ones
 */
export function report({ all, found, minutes, seed, write, command }: RunSummary): number {
  const equivalents: Equivalent[] = JSON.parse(readFileSync(EQUIVALENT, 'utf8'))
  const isEquivalent = ({ file, key }: Result) =>
    equivalents.some(each => each.file === file && each.mutant === key)
  const isLeft = (result: Result) => !isCaught(result) && !isEquivalent(result)
  const left = found
    .filter(isLeft)
    .map(({ file, line, key, outcome }) => `${outcome}: ${file}:${line} ${key}`)
  for (const line of left) console.log(line)
  for (const { file, mutant } of equivalents) {
    const result = found.find(each => each.file === file && each.key === mutant)
    const isThere = all.some(each => each.file === file && each.key === mutant)
    if (all.some(each => each.file === file) && (!isThere || (result && isCaught(result))))
      console.log(`listed as equivalent, but ${isThere ? 'caught' : 'not there'}: ${file} ${mutant}`)
  }
  const figures = (part: readonly Result[]) => {
    const count = (outcome: Result['outcome']) => part.filter(result => result.outcome === outcome).length
    const caught = count('killed') + count('timed out')
    const remaining = part.filter(isLeft).length
    return {
      judged: part.length,
      killed: count('killed'),
      'timed out': count('timed out'),
      equivalent: part.length - caught - remaining,
      left: remaining,
      caught: `${((caught / (caught + remaining)) * 100).toFixed(1)} %`,
      share: caught / (caught + remaining),
    }
  }
  const folderOf = new Map(all.map(({ file, folder }) => [file, folder]))
  const byFolder = Map.groupBy(found, ({ file }) => folderOf.get(file)!)
  const rows = [...byFolder].map(([folder, part]) => {
    const total = all.filter(each => each.folder === folder).length
    const mutants = part.length < total ? `sample of ${part.length} of ${total}, seed ${seed}` : String(total)
    return { folder, mutants, ...figures(part) }
  })
  const shown = [...rows, { folder: 'all', mutants: String(all.length), ...figures(found) }].map(
    ({ share: _, ...row }) => row,
  )
  console.table(shown)
  console.log(`${minutes.toFixed(1)} minutes`)
  if (write) writeFileSync(WRITTEN, written(shown, left, command))
  return figures(found).share
}

function written(rows: readonly Record<string, string | number>[], left: readonly string[], command: string) {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |\n`
  const titles = Object.keys(rows[0]!)
  return [
    '# Mutants caught by the tests\n\n',
    `Written by \`npm run test:mutants -- ${command}\`. How the tool works: CONTRIBUTING.md, “How we test”.\n\n`,
    line(titles),
    line(titles.map(() => '---')),
    ...rows.map(row => line(titles.map(title => row[title]!))),
    '\n## Left\n\n',
    ...left.map(each => `- \`\` ${each} \`\`\n`),
  ].join('')
}
