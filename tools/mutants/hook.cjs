// Preloaded into every process of a test that runs against a mutant: the one source file is read changed, from memory,
// so that no file of the tree is written. Plain CommonJS that any Node understands, because tests start older ones too.
const { readFileSync } = require('node:fs')
const module_ = require('node:module')
const { pathToFileURL } = require('node:url')

const mutant = process.env.KEYWAY_MUTANT && JSON.parse(process.env.KEYWAY_MUTANT)
if (mutant && module_.registerHooks) {
  const mutated = pathToFileURL(mutant.file).href
  module_.registerHooks({
    load(url, context, nextLoad) {
      if (url !== mutated) return nextLoad(url, context)
      const code = module_.stripTypeScriptTypes(readFileSync(mutant.file, 'utf8'))
      const source = code.slice(0, mutant.start) + mutant.text + code.slice(mutant.end)
      return { format: 'module', source, shortCircuit: true }
    },
  })
}
