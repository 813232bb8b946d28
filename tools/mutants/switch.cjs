// Preloaded into every process that tests mutants, and into those that its tests start: sources are read with all of
// their mutants in them (schemata.ts), and `__keywayMutant(id)` says which is on. Plain CommonJS that any Node
// understands, because tests start older ones too.
const { readFileSync } = require('node:fs')
const module_ = require('node:module')
const { pathToFileURL } = require('node:url')

/** An endless loop through the mutated place ends in an error. */
const MOST_HITS = 200_000

/** Children take it from the environment, which the worker sets before each run. */
const state = { active: Number(process.env.KEYWAY_MUTANT_ON ?? -1), left: MOST_HITS, hits: null }
globalThis.__keywayMutants = state
globalThis.__keywayMutant = id => {
  state.hits?.add(id)
  if (id !== state.active) return false
  if (state.left-- <= 0) throw new Error('a mutant that does not end')
  return true
}
globalThis.__keywaySwitchOn = id => {
  state.active = id
  state.left = MOST_HITS
  process.env.KEYWAY_MUTANT_ON = String(id)
}

const folder = process.env.KEYWAY_MUTANTS
if (folder && module_.registerHooks) {
  /** URL of a source to the file that holds it instrumented. */
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
