import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { isLanguage, LANGUAGES, type Language } from '../languages/languages.ts'
import { mistakesIn } from '../languages/replacements.ts'

/** Four times the size of all built-in texts in the longest language. */
const MAX_FILE_BYTES = 256 * 1024

/** The texts that replace the built-in ones, by language, and what is wrong with their files. */
export function textsOf(folder: string | undefined): {
  texts: ReadonlyMap<Language, unknown>
  mistakes: string[]
} {
  const texts = new Map<Language, unknown>()
  if (folder === undefined) return { texts, mistakes: [] }
  const mistakes: string[] = []
  const addMistake = (text: string) =>
    mistakes.push(`KEYWAY_TEXTS ${JSON.stringify(folder)}: ${text}. Example: KEYWAY_TEXTS=/etc/keyway/texts`)
  try {
    for (const name of readdirSync(folder).filter(name => name.endsWith('.json')))
      readTexts(name, name.slice(0, -'.json'.length))
  } catch (error) {
    addMistake(`the folder cannot be read (${codeOf(error)})`)
  }
  return { texts, mistakes }

  function readTexts(name: string, language: string): void {
    if (!isLanguage(language))
      return void addMistake(
        `${name} is named after no language that there is: ${Object.keys(LANGUAGES).join(', ')}`,
      )
    const content = parse(name)
    if (content === undefined) return
    const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions()
    for (const mistake of mistakesIn(content, englishTexts(), pluralCategories))
      addMistake(`in ${name}, ${mistake}`)
    texts.set(language, content)
  }

  /** Parses a file. If it is invalid, adds the mistake to the list and returns undefined. */
  function parse(name: string): unknown {
    const file = join(folder!, name)
    try {
      if (statSync(file).size > MAX_FILE_BYTES) return void addMistake(`${name} is larger than 256 KiB`)
      return JSON.parse(readFileSync(file, 'utf8'))
    } catch (error) {
      if (error instanceof SyntaxError) addMistake(`${name} is no JSON (${error.message})`)
      else addMistake(`${name} cannot be read (${codeOf(error)})`)
      return undefined
    }
  }
}

/**
 * The built-in English texts. Loaded only if texts are replaced, since most commands need none, and with `require`,
 * since settings are read synchronously.
 */
function englishTexts(): unknown {
  return createRequire(import.meta.url)('../languages/en/index.ts').texts
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unknown error'
}
