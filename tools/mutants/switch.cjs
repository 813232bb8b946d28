// Preloaded into every process that tests mutants, and into its children: replaces sources by instrumented ones with
// all mutants (schemata.ts), and defines `__keywayMutant(id)`, which tells whether a mutant is active. CommonJS for any
// Node version, because tests also start older ones.
const { readFileSync } = require('node:fs')
const module_ = require('node:module')
const { pathToFileURL } = require('node:url')

/** Maximum number of executions of the active mutant, so that an endless loop ends with an error. */
const MAX_EXECUTIONS = 200_000

/** Child processes read the active mutant from the environment, which the worker sets before each run. */
const state = { active: Number(process.env.KEYWAY_MUTANT_ON ?? -1), remaining: MAX_EXECUTIONS, hits: null }
globalThis.__keywayMutants = state
globalThis.__keywayMutant = id => {
  state.hits?.add(id)
  if (id !== state.active) return false
  if (state.remaining-- <= 0) throw new Error('the mutant causes an endless loop')
  return true
}
globalThis.__keywaySwitchOn = id => {
  state.active = id
  state.remaining = MAX_EXECUTIONS
  process.env.KEYWAY_MUTANT_ON = String(id)
}

const folder = process.env.KEYWAY_MUTANTS
if (folder && module_.registerHooks) {
  /** URL of a source → its instrumented file. */
  const instrumented = new Map(
    Object.entries(JSON.parse(readFileSync(`${folder}/files.json`, 'utf8'))).map(([source, file]) => [
      pathToFileURL(source).href,
      file,
    ]),
  )
  module_.registerHooks({
    load(url, context, nextLoad) {
      const file = instrumented.get(url.split('?')[0])
      if (!file) return nextLoad(url, context)
      return { format: 'module', source: readFileSync(file, 'utf8'), shortCircuit: true }
    },
  })
}
