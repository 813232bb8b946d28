import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { type RegisteredTest, replaceNodeTest, testsOf } from './registered-tests.ts'
import { ROOT } from './run-test.ts'

export type Request =
  /** Loads a test file. The answer has its tests. */
  | { kind: 'load'; file: string }
  /** Runs one test with one active mutant, or with none if `mutant` is -1. */
  | { kind: 'run'; file: string; title: string; mutant: number }

export type Answer =
  | { kind: 'loaded'; tests: { title: string; body: string }[]; hits: number[] }
  /** The test file or one of its imports threw an error. */
  | { kind: 'not loaded'; error: string }
  | {
      kind: 'ran'
      error: string | null
      /** Whether the error was thrown outside the test, which may still be running. */
      isStray: boolean
      milliseconds: number
      hits: number[]
    }

interface MutantState {
  active: number
  hits: Set<number> | null
}

declare global {
  var __keywayMutants: MutantState
  var __keywaySwitchOn: (id: number) => void
}

const files = new Map<string, Map<string, RegisteredTest>>()
let failRunningTest: ((error: unknown) => void) | null = null

replaceNodeTest()
fc.configureGlobal({ seed: 1 })
process.on('uncaughtException', error => failRunningTest?.(error))
process.on('unhandledRejection', error => failRunningTest?.(error))
process.on('disconnect', () => process.exit())
process.on('message', async (request: Request) => {
  process.send?.(request.kind === 'load' ? await load(request.file) : await run(request))
})
await once(process, 'disconnect')

async function load(file: string): Promise<Answer> {
  const stopRecording = recordHits()
  try {
    const tests = [...(await loadTests(file)).values()]
    return { kind: 'loaded', tests: tests.map(({ title, body }) => ({ title, body })), hits: stopRecording() }
  } catch (error) {
    stopRecording()
    return { kind: 'not loaded', error: String(error) }
  }
}

async function loadTests(file: string): Promise<Map<string, RegisteredTest>> {
  const cachedTests = files.get(file)
  if (cachedTests) return cachedTests
  const tests = await testsOf(pathToFileURL(join(ROOT, file)).href)
  const byTitle = new Map(tests.map(each => [each.title, each]))
  files.set(file, byTitle)
  return byTitle
}

async function run({ file, title, mutant }: Request & { kind: 'run' }): Promise<Answer> {
  const test = (await loadTests(file)).get(title)
  if (!test) return { kind: 'ran', error: 'no such test', isStray: true, milliseconds: 0, hits: [] }
  globalThis.__keywaySwitchOn(mutant)
  const stopRecording = mutant < 0 ? recordHits() : () => []
  const startedAt = performance.now()
  let isStray = false
  const rejectionByStrayError = new Promise<never>((_, reject) => {
    failRunningTest = error => {
      isStray = true
      reject(error)
    }
  })
  rejectionByStrayError.catch(() => {})
  let error: string | null = null
  try {
    await Promise.race([test.run(), rejectionByStrayError])
  } catch (thrown) {
    error = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  }
  failRunningTest = null
  globalThis.__keywaySwitchOn(-1)
  return { kind: 'ran', error, isStray, milliseconds: performance.now() - startedAt, hits: stopRecording() }
}

function recordHits(): () => number[] {
  const hits = new Set<number>()
  globalThis.__keywayMutants.hits = hits
  return () => {
    globalThis.__keywayMutants.hits = null
    return [...hits]
  }
}
