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
      let source = module_.stripTypeScriptTypes(readFileSync(mutant.file, 'utf8'))
      for (const { start, end, text } of mutant.edits.toReversed())
        source = source.slice(0, start) + text + source.slice(end)
      return { format: 'module', source, shortCircuit: true }
    },
  })
}
