import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ORIGINAL_TREE } from './copy.ts'
import { EQUIVALENTS, isEquivalent } from './equivalents.ts'
import { isCaught, type Result } from './results.ts'
import type { Candidate } from './run.ts'

export interface RunSummary {
  all: readonly Candidate[]
  /** Results of the selected mutants. */
  judged: readonly Result[]
  minutes: number
  seed: string
  write: boolean
  command: string
}

const RESULTS_DOCUMENT = join(ORIGINAL_TREE, 'tools/mutants/results.md')
/** The heading of the part of the document that is written by hand. */
const HANDWRITTEN_HEADING = '\n## Other samples of the hub\n'

/**
 * Prints statistics by folder and every survivor. @returns the fraction of detected mutants, without equivalent ones
 */
export function report({ all, judged, minutes, seed, write, command }: RunSummary): number {
  const isUndetected = (result: Result) => !isCaught(result) && !isEquivalent(result)
  const lines = new Map(all.map(({ name, line }) => [name, line]))
  const undetectedMutants = judged
    .filter(isUndetected)
    .map(({ file, key, outcome }) => `${outcome}: ${file}:${lines.get(`${file} ${key}`)} ${key}`)
  for (const line of undetectedMutants) console.log(line)
  for (const { file, mutant } of EQUIVALENTS) {
    const result = judged.find(each => each.file === file && each.key === mutant)
    const exists = all.some(each => each.file === file && each.key === mutant)
    if (all.some(each => each.file === file) && (!exists || (result && isCaught(result))))
      console.log(`listed as equivalent, but ${exists ? 'caught' : 'not there'}: ${file} ${mutant}`)
  }
  const statisticsOf = (results: readonly Result[]) => {
    const count = (outcome: Result['outcome']) => results.filter(result => result.outcome === outcome).length
    const caughtCount = count('killed') + count('timed out')
    const remainingCount = results.filter(isUndetected).length
    return {
      judged: results.length,
      killed: count('killed'),
      'timed out': count('timed out'),
      equivalent: results.length - caughtCount - remainingCount,
      left: remainingCount,
      caught: `${((caughtCount / (caughtCount + remainingCount)) * 100).toFixed(1)} %`,
      share: caughtCount / (caughtCount + remainingCount),
    }
  }
  const folderOf = new Map(all.map(({ file, folder }) => [file, folder]))
  const byFolder = Map.groupBy(judged, ({ file }) => folderOf.get(file)!)
  const rows = [...byFolder].map(([folder, results]) => {
    const total = all.filter(each => each.folder === folder).length
    const mutants =
      results.length < total ? `sample of ${results.length} of ${total}, seed ${seed}` : String(total)
    return { folder, mutants, ...statisticsOf(results) }
  })
  const tableRows = [...rows, { folder: 'all', mutants: String(all.length), ...statisticsOf(judged) }].map(
    ({ share: _, ...row }) => row,
  )
  console.table(tableRows)
  console.log(`${minutes.toFixed(1)} minutes`)
  if (write) writeFileSync(RESULTS_DOCUMENT, documentText(tableRows, undetectedMutants, command))
  return statisticsOf(judged).share
}

function commitHash(): string {
  return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: ORIGINAL_TREE,
    encoding: 'utf8',
  }).trim()
}

function documentText(
  rows: readonly Record<string, string | number>[],
  undetectedMutants: readonly string[],
  command: string,
) {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |\n`
  const titles = Object.keys(rows[0]!)
  return [
    '# Mutants caught by the tests\n\n',
    `Written by \`npm run test:mutants -- ${command}\` on ${new Date().toISOString().slice(0, 10)}, commit ${commitHash()}. `,
    'How the tool works: CONTRIBUTING.md, “How we test”.\n\n',
    line(titles),
    line(titles.map(() => '---')),
    ...rows.map(row => line(titles.map(title => row[title]!))),
    '\n## Left\n\n',
    ...undetectedMutants.map(each => `- \`\` ${each} \`\`\n`),
    handwrittenPart(),
  ].join('')
}

function handwrittenPart(): string {
  const document = readFileSync(RESULTS_DOCUMENT, 'utf8')
  const start = document.indexOf(HANDWRITTEN_HEADING)
  return start < 0 ? '' : document.slice(start)
}
