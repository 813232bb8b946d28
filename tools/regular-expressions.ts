/**
 * Checks with recheck that every regular expression of the server and the SDK takes linear time. Patterns built at run
 * time cannot be checked, and are refused. Prints violations; the exit status is 1 if there are any.
 */
import { glob, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire, stripTypeScriptTypes } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { requireTool } from './install.ts'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = '{packages/server/src,packages/sdk/src}/**/*.{ts,js}'
/**
 * The timeout of one pattern; the slowest takes half a second on an idle machine. Other time limits are off: with them
 * a linear pattern looks vulnerable on a busy machine.
 */
const OPTIONS = { timeout: 60_000, seedingTimeout: null, incubationTimeout: null, attackTimeout: null }
/** The file of the patterns that a version of recheck found safe, which saves checks of some 40 ms each. */
const CACHE = join(ROOT, 'node_modules/.cache/keyway/regular-expressions.json')

interface Node {
  type: string
  start: number
  regex?: { pattern: string; flags: string }
  callee?: { name?: string }
}

interface FoundPattern {
  /** `file:line` */
  place: string
  pattern: string
  flags: string
}

type CheckPattern = (
  pattern: string,
  flags: string,
  options: typeof OPTIONS,
) => Promise<{ status: 'safe' | 'vulnerable' | 'unknown'; complexity?: { summary: string } }>

const { parse } = createRequire(import.meta.url)(await requireTool('acorn')) as {
  parse(code: string, options: object): Node
}
const { check } = createRequire(import.meta.url)(await requireTool('recheck')) as { check: CheckPattern }
const { version } = JSON.parse(await readFile(join(await requireTool('recheck'), 'package.json'), 'utf8'))

const { literals, constructedPlaces } = await findAll(process.argv.slice(2))
const safePatterns = await readCache()
const violations = constructedPlaces.map(place => `${place}: a pattern that is put together at run time`)
for (const { place, pattern, flags } of literals) {
  const key = `${version} /${pattern}/${flags}`
  if (safePatterns.has(key)) continue
  const { status, complexity } = await check(pattern, flags, OPTIONS)
  if (status === 'safe') safePatterns.add(key)
  else violations.push(`${place}: /${pattern}/${flags} is ${complexity?.summary ?? status}`)
}
await mkdir(dirname(CACHE), { recursive: true })
await writeFile(CACHE, JSON.stringify([...safePatterns]))
console.log(violations.join('\n') || `${literals.length} regular expressions, all linear`)
// recheck starts a process that would keep this one running.
process.exit(violations.length > 0 ? 1 : 0)

async function findAll(paths: string[]): Promise<{ literals: FoundPattern[]; constructedPlaces: string[] }> {
  const files = paths.length > 0 ? paths : await Array.fromAsync(glob(SOURCES, { cwd: ROOT }))
  const literals: FoundPattern[] = []
  const constructedPlaces: string[] = []
  for (const file of files) {
    const text = await readFile(join(ROOT, file), 'utf8')
    const code = file.endsWith('.ts') ? stripTypeScriptTypes(text) : text
    const tree = parse(code, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true })
    for (const node of nodesOf(tree)) {
      const place = `${relative('.', file)}:${code.slice(0, node.start).split('\n').length}`
      if (node.regex) literals.push({ place, ...node.regex })
      else if (constructsRegExp(node)) constructedPlaces.push(place)
    }
  }
  return { literals, constructedPlaces }
}

function constructsRegExp({ type, callee }: Node): boolean {
  return (type === 'NewExpression' || type === 'CallExpression') && callee?.name === 'RegExp'
}

function* nodesOf(value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null) return
  if ('type' in value && 'start' in value) yield value as Node
  for (const child of Object.values(value)) yield* nodesOf(child)
}

async function readCache(): Promise<Set<string>> {
  try {
    return new Set(JSON.parse(await readFile(CACHE, 'utf8')))
  } catch {
    return new Set()
  }
}
