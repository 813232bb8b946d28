import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** What takes or waits longest begins first; the others fill the gaps. */
const LONGEST = [
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
 * One program for the `.test.ts` files of each folder, written into the folder `into`: a process a file spent a fifth
 * of the suite's time on starting and warming up. Whatever else is asked for runs as it is.
 *
 * What a file leaves in its process, the others of its folder find: a test puts back what it changes there.
 *
 * @param files  relative to `root`
 */
export function byFolder(files: readonly string[], root: string, into: string): string[] {
  const isTest = (file: string) => file.endsWith('.test.ts')
  const folders = Map.groupBy(files.filter(isTest), file => dirname(file))
  const programs = [...folders].map(([folder, members]) => {
    const program = join(into, `${place(folder)}-${folder.replaceAll('/', '-')}.mjs`)
    writeFileSync(program, members.map(file => importOf(join(root, file))).join(''))
    return program
  })
  return [...programs, ...files.filter(file => !isTest(file))]
}

/** The runner starts programs in the order of their names. */
function place(folder: string): string {
  const found = LONGEST.findIndex(name => folder.endsWith(name))
  return String(found < 0 ? LONGEST.length : found).padStart(2, '0')
}

function importOf(path: string): string {
  return `import ${JSON.stringify(pathToFileURL(path).href)}\n`
}
