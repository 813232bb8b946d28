import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { tool } from '../../../../tools/install.ts'

const MUTANT_VARIABLE = '__keywayMutant'
let moduleCount = 0

/** A made-up module with code for every mutation operator, and with syntax that is difficult to instrument. */
const SOURCE = `
const LIMITS = [60 * 1000, 2]
let calls: string[] = []
const log = { add: (text: string) => { if (calls.push(text) > 500) throw new RangeError() }, deep: { list: ['b', 'a'] as string[] } }
class Counter {
  #count = 0
  readonly step = LIMITS[1]!
  add(by = 1) {
    this.#count += by
    this.#count++
    return this
  }
  get value() { return -this.#count }
}
const logIf = (isEnabled: boolean) => isEnabled ? log : undefined
function traceOf(a: number, b: number | null): string {
  calls = []
  log.add('begin');
  const found = logIf(a > 1)?.deep.list.filter(each => each !== 'b').toSorted()
  logIf(a < 1)?.add?.('chain')
  if (found && a >= 2 || b === null) log.add(\`found \${found?.length ?? 'none'}\`)
  else log.add('not found')
  for (let index = 0; index < a; index++) {
    if (index % 2 === 1) continue
    log.add(String(index))
  }
  ;[a, b ?? 7].forEach(each => { log.add(each.toString()) })
  const isLate = false
  if (isLate || a > 3) log.add('late')
  const isOdd = !(a % 2 === 0)
  try {
    if (isOdd) throw new Error('odd')
  } catch {
    return 'caught' + calls.join().toUpperCase()
  }
  return [calls.join('|'), new Counter().add().add(a).value, Math.max(a, b ?? 0)].join(' ')
}
export const run = () => [[0, null], [1, 4], [2, 0], [3, null], [4, 5]].map(([a, b]) => {
  try { return traceOf(a as number, b as number | null) } catch (error) { return (error as Error).name }
})
`

describe('an instrumented module', () => {
  test('behaves like each mutant when it is active, and like the original otherwise', async t => {
    if (!(await tool(t, 'acorn'))) return
    const { instrument } = await import('../../../../tools/mutants/schemata.ts')
    const { mutantsOf } = await import('../../../../tools/mutants/operators.ts')
    const { stripTypeScriptTypes } = await import('node:module')
    const javaScript = stripTypeScriptTypes(SOURCE)
    const mutants = mutantsOf(SOURCE)
    const { code, staticIds } = instrument(SOURCE, mutants, mutant => mutants.indexOf(mutant))
    const originalResult = await resultOf(javaScript, -1)
    assert.deepEqual(await resultOf(code, -1), originalResult)
    let differingCount = 0
    for (const [id, { start, end, text, key }] of mutants.entries()) {
      const expectedResult = await resultOf(javaScript.slice(0, start) + text + javaScript.slice(end), -1)
      assert.deepEqual(await resultOf(code, id), expectedResult, key)
      if (String(expectedResult) !== String(originalResult)) differingCount++
    }
    assert.ok(
      mutants.length > 90 && differingCount > mutants.length / 2,
      `${differingCount} of ${mutants.length}`,
    )
    const operators = new Set(mutants.map(({ operator }) => operator))
    assert.equal(operators.size, 16, [...operators].join())
    const loadTimeKeys = mutants.filter((_, id) => staticIds.has(id)).map(({ key }) => key)
    assert.ok(loadTimeKeys.includes('LIMITS: 60 * 1000: * → /'), loadTimeKeys.join())
    assert.ok(!loadTimeKeys.some(key => key.startsWith('traceOf')), loadTimeKeys.join())
  })
})

describe('mutants that are listed as equivalent', () => {
  test('are drawn at random by a seed, each at most once', async t => {
    if (!(await tool(t, 'acorn'))) return
    const { drawEquivalents } = await import('../../../../tools/mutants/equivalents.ts')
    const drawnEntries = drawEquivalents(20, '1')
    assert.equal(new Set(drawnEntries).size, 20)
    assert.deepEqual(drawEquivalents(20, '1'), drawnEntries)
    assert.notDeepEqual(drawEquivalents(20, '2'), drawnEntries)
  })
})

/** The result of `run` of the module, or the name of the error that loading or running it throws. */
async function resultOf(code: string, activeMutant: number): Promise<unknown> {
  const name = `${MUTANT_VARIABLE}${moduleCount++}`
  Reflect.set(globalThis, name, (id: number) => id === activeMutant)
  try {
    const url = `data:text/javascript,${encodeURIComponent(code.replaceAll(MUTANT_VARIABLE, name))}//${name}`
    return (await import(url)).run()
  } catch (error) {
    return (error as Error).name
  } finally {
    Reflect.deleteProperty(globalThis, name)
  }
}
