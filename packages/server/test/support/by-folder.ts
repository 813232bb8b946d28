import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Files that take as long as whole folders do, so each has a process of its own. */
const OWN_PROCESS = ['web/looks.test.ts']
/** Folders in the order in which they are started, the slowest first. */
const SLOWEST_FIRST = [
  ...OWN_PROCESS,
  'cluster',
  'flows',
  'sdk/test',
  'ops',
  'web',
  'faults',
  'hub',
  'backup',
  'cli',
  'http',
  'contract',
]

/**
 * Writes one program per folder into `into`, which imports the folder's `.test.ts` files: with a process per file, a
 * fifth of the suite's time was start-up. Each file of `OWN_PROCESS` gets a program of its own. Returns the programs,
 * and those of `files` that are no `.test.ts` files.
 *
 * The files of a folder share a process, so a test must restore global state that it changes.
 *
 * @param files  relative to `root`
 */
export function groupByFolder(files: readonly string[], root: string, into: string): string[] {
  const isTest = (file: string) => file.endsWith('.test.ts')
  const hasOwnProcess = (file: string) => OWN_PROCESS.some(name => file.endsWith(name))
  const groups = Map.groupBy(files.filter(isTest), file => (hasOwnProcess(file) ? file : dirname(file)))
  const programs = [...groups].map(([group, members]) => {
    const program = join(into, `${startPosition(group)}-${group.replaceAll('/', '-')}.mjs`)
    writeFileSync(program, members.map(file => importOf(join(root, file))).join(''))
    return program
  })
  return [...programs, ...files.filter(file => !isTest(file))]
}

/** The prefix of a program's name, since the runner starts programs in the order of their names. */
function startPosition(group: string): string {
  const position = SLOWEST_FIRST.findIndex(name => group.endsWith(name))
  return String(position < 0 ? SLOWEST_FIRST.length : position).padStart(2, '0')
}

function importOf(path: string): string {
  return `import ${JSON.stringify(pathToFileURL(path).href)}\n`
}
