import { registerHooks } from 'node:module'
import { mock, type TestContext } from 'node:test'

/*
 * Replaces `node:test` in a worker, and stores the tests that files register, so that one process can run each of them
 * repeatedly. Node's own runner runs the tests of a process only once.
 */

export interface RegisteredTest {
  /** The titles of its suites, and its own title. */
  title: string
  body: string
  run(): Promise<void>
}

interface Suite {
  title: string
  before: Hook[]
  parent: Suite | null
}

type Hook = () => unknown
type Body = (t: TestContext) => unknown
interface Options {
  skip?: unknown
  todo?: unknown
}

let currentSuite: Suite | null = null
let registeredTests: RegisteredTest[] = []

const SELF_URL = import.meta.url
/** Both engines run the same tests, so those of PostgreSQL are skipped. */
const SKIPPED_TITLE = 'on postgres'

/** Redirects later imports of `node:test`. */
export function replaceNodeTest(): void {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier === 'node:test' && context.parentURL !== SELF_URL)
        return { url: SELF_URL, shortCircuit: true, format: 'module' }
      return nextResolve(specifier, context)
    },
  })
}

/** Imports a test file, and returns the tests that it registers. */
export async function testsOf(url: string): Promise<RegisteredTest[]> {
  registeredTests = []
  currentSuite = { title: '', before: [], parent: null }
  await import(url)
  return registeredTests
}

export function describe(title: string, ...rest: [Options, Hook] | [Hook]): void {
  const [options, define] = rest.length === 2 ? rest : [{}, rest[0]]
  if (options.skip || title.includes(SKIPPED_TITLE)) return
  const parent = currentSuite
  currentSuite = { title, before: [], parent }
  define()
  currentSuite = parent
}

export function test(title: string, ...rest: [Options, Body] | [Body]): void {
  const [options, body] = rest.length === 2 ? rest : [{}, rest[0]]
  if (options.skip || options.todo || title.includes(SKIPPED_TITLE)) return
  const suites = enclosingSuites()
  registeredTests.push({
    title: [...suites.map(suite => suite.title), title].filter(Boolean).join(' › '),
    body: body.toString(),
    run: () => runTest(title, body, suites),
  })
}

export function before(hook: Hook): void {
  currentSuite?.before.push(hook)
}

export function after(_hook: Hook): void {}

export { mock, test as it }
export default test

function enclosingSuites(): Suite[] {
  const suites: Suite[] = []
  for (let suite = currentSuite; suite; suite = suite.parent) suites.unshift(suite)
  return suites
}

async function runTest(title: string, body: Body, suites: readonly Suite[]): Promise<void> {
  const cleanups: Hook[] = []
  let failure: { error: unknown } | undefined
  const runHook = async (each: Hook) => {
    try {
      await each()
    } catch (error) {
      failure ??= { error }
    }
  }
  // `before` runs once per process: all runs share the server of a suite, which ends with the process.
  for (const suite of suites) for (const hook of suite.before.splice(0)) await runHook(hook)
  if (!failure) await runHook(() => body(contextOf(title, cleanups)))
  for (const cleanup of cleanups) await runHook(cleanup)
  mock.restoreAll()
  mock.timers.reset()
  if (failure) throw failure.error
}

/** The part of the test context that the tests use. */
function contextOf(title: string, cleanups: Hook[]): TestContext {
  return {
    name: title,
    fullName: title,
    mock,
    signal: new AbortController().signal,
    after: (hook: Hook) => cleanups.push(hook),
    diagnostic: () => {},
    skip: () => {},
  } as unknown as TestContext
}
