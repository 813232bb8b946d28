import { registerHooks } from 'node:module'
import { mock, type TestContext } from 'node:test'

/*
 * Replaces `node:test` in a worker: it stores the tests that files register, so that one process can run each repeatedly.
 * Node's runner runs the tests of a process once.
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
  around: Suite | null
}

type Hook = () => unknown
type Body = (t: TestContext) => unknown
interface Options {
  skip?: unknown
  todo?: unknown
}

let current: Suite | null = null
let registered: RegisteredTest[] = []

const SELF = import.meta.url
/** Both engines run the same tests, so those of PostgreSQL are skipped. */
const SKIPPED = 'on postgres'

/** Redirects later imports of `node:test`. */
export function replaceNodeTest(): void {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier === 'node:test' && context.parentURL !== SELF)
        return { url: SELF, shortCircuit: true, format: 'module' }
      return nextResolve(specifier, context)
    },
  })
}

/** The tests that importing `url` registers. */
export async function testsOf(url: string): Promise<RegisteredTest[]> {
  registered = []
  current = { title: '', before: [], around: null }
  await import(url)
  return registered
}

export function describe(title: string, ...rest: [Options, Hook] | [Hook]): void {
  const [options, define] = rest.length === 2 ? rest : [{}, rest[0]]
  if (options.skip || title.includes(SKIPPED)) return
  const around = current
  current = { title, before: [], around }
  define()
  current = around
}

export function test(title: string, ...rest: [Options, Body] | [Body]): void {
  const [options, body] = rest.length === 2 ? rest : [{}, rest[0]]
  if (options.skip || options.todo || title.includes(SKIPPED)) return
  const around = suitesAround()
  registered.push({
    title: [...around.map(suite => suite.title), title].filter(Boolean).join(' › '),
    body: body.toString(),
    run: () => runOne(title, body, around),
  })
}

export function before(hook: Hook): void {
  current?.before.push(hook)
}

export function after(_hook: Hook): void {}

export { mock }
export default test

function suitesAround(): Suite[] {
  const around: Suite[] = []
  for (let suite = current; suite; suite = suite.around) around.unshift(suite)
  return around
}

async function runOne(title: string, body: Body, around: readonly Suite[]): Promise<void> {
  const cleanups: Hook[] = []
  let failure: { error: unknown } | undefined
  const attempt = async (each: Hook) => {
    try {
      await each()
    } catch (error) {
      failure ??= { error }
    }
  }
  // Once per process: the server of a suite is shared by all runs, and closed at the end of the process.
  for (const suite of around) for (const hook of suite.before.splice(0)) await attempt(hook)
  if (!failure) await attempt(() => body(contextOf(title, cleanups)))
  for (const cleanup of cleanups) await attempt(cleanup)
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
