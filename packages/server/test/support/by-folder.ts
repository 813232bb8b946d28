import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Files that take as long as other folders do, and have a process of their own. */
const ALONE = ['web/looks.test.ts']
/** Folders in the order in which they are started, the slowest first. */
const LONGEST = [
  ...ALONE,
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
 * fifth of the suite's time was start-up. Other files run unchanged.
 *
 * The files of a folder share a process, so a test must restore global state that it changes.
 *
 * @param files  relative to `root`
 */
export function byFolder(files: readonly string[], root: string, into: string): string[] {
  const isTest = (file: string) => file.endsWith('.test.ts')
  const isAlone = (file: string) => ALONE.some(name => file.endsWith(name))
  const groups = Map.groupBy(files.filter(isTest), file => (isAlone(file) ? file : dirname(file)))
  const programs = [...groups].map(([group, members]) => {
    const program = join(into, `${place(group)}-${group.replaceAll('/', '-')}.mjs`)
    writeFileSync(program, members.map(file => importOf(join(root, file))).join(''))
    return program
  })
  return [...programs, ...files.filter(file => !isTest(file))]
}

/** The runner starts programs in the order of their names. */
function place(group: string): string {
  const found = LONGEST.findIndex(name => group.endsWith(name))
  return String(found < 0 ? LONGEST.length : found).padStart(2, '0')
}

function importOf(path: string): string {
  return `import ${JSON.stringify(pathToFileURL(path).href)}\n`
}
