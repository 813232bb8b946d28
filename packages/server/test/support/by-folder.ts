import { statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * One program for the `.test.ts` files of each folder, written into the folder `into`: a process a file spent a fifth
 * of the suite's time on starting and warming up. The runner starts them in the order of their names, so the largest
 * come first and the small ones fill the gap at the end. Whatever else is asked for, and a file alone, runs as it is.
 *
 * What a file leaves in its process, the others of its folder find: a test puts back what it changes there.
 *
 * @param files  relative to `root`
 */
export function byFolder(files: readonly string[], root: string, into: string): string[] {
  const folders = [...Map.groupBy(files, file => (file.endsWith('.test.ts') ? dirname(file) : file))]
  const bytes = new Map(
    folders.map(([folder, members]) => [folder, sum(members.map(file => size(root, file)))]),
  )
  const largestFirst = folders.toSorted(([one], [other]) => bytes.get(other)! - bytes.get(one)!)
  return largestFirst.map(([folder, members], index) => {
    if (members.length === 1) return members[0]!
    const program = join(into, `${String(index).padStart(2, '0')}-${folder.replaceAll('/', '-')}.mjs`)
    writeFileSync(program, members.map(file => importOf(join(root, file))).join(''))
    return program
  })
}

function importOf(path: string): string {
  return `import ${JSON.stringify(pathToFileURL(path).href)}\n`
}

function size(root: string, file: string): number {
  return statSync(join(root, file)).size
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}
