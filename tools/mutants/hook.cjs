// Preloaded into every process of a test that runs against a mutant: replaces the source file by its mutant in memory,
// so that no file of the tree is written. CommonJS for any Node version, because tests also start older ones.
const { readFileSync } = require('node:fs')
const module_ = require('node:module')
const { pathToFileURL } = require('node:url')

const mutant = process.env.KEYWAY_MUTANT && JSON.parse(process.env.KEYWAY_MUTANT)
if (mutant && module_.registerHooks) {
  const mutatedUrl = pathToFileURL(mutant.file).href
  module_.registerHooks({
    load(url, context, nextLoad) {
      if (url !== mutatedUrl) return nextLoad(url, context)
      let source = module_.stripTypeScriptTypes(readFileSync(mutant.file, 'utf8'))
      for (const { start, end, text } of mutant.edits.toReversed())
        source = source.slice(0, start) + text + source.slice(end)
      return { format: 'module', source, shortCircuit: true }
    },
  })
}
