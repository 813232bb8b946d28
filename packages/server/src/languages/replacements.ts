import { nearestName } from '../nearest-name.ts'
import { isPlural, placeholdersOf } from './text.ts'

/** Maximum length of a text: longer than all built-in texts, and short enough for pages and mails to stay usable. */
const MAX_TEXT_LENGTH = 2000
/** Maximum number of mistakes that are listed for one file. */
const MAX_MISTAKES = 20
/** Maximum length of an unknown name for which a similar name is suggested. Longer names are not compared. */
const MAX_NAME_LENGTH = 60

/** Content that mails must have. The message about a mistake in a replacement says which of it would be lost. */
const REQUIRED_CONTENT: [key: RegExp, content: string][] = [
  [/^mails\.(.+\.button|keysButton)$/, 'the button of the mail'],
  [/^mails\.expires$/, 'the note that the link and the code expire after 5 minutes'],
  [/^mails\..+\.ignore$/, 'the note that the mail can be ignored'],
  [/^mails\.support$/, 'the support contact of every mail'],
]

/**
 * The mistakes in the texts that an operator wrote for a language, as sentences that begin with the key; beyond
 * MAX_MISTAKES, a last entry only counts the others. An operator may replace any part of the texts; each must have the
 * key and the placeholders of an English text, and only plural forms of the language.
 *
 * @param forms the plural forms of the language
 */
export function mistakesIn(replacements: unknown, english: unknown, forms: readonly string[]): string[] {
  const mistakes: string[] = []
  compare(english, replacements, '')
  return mistakes.length > MAX_MISTAKES
    ? [...mistakes.slice(0, MAX_MISTAKES), `and ${mistakes.length - MAX_MISTAKES} more`]
    : mistakes

  function compare(builtIn: unknown, replacement: unknown, key: string): void {
    if (typeof builtIn === 'string') compareText(builtIn, replacement, key)
    else if (Array.isArray(builtIn)) compareList(builtIn, replacement, key)
    else if (typeof replacement !== 'object' || replacement === null || Array.isArray(replacement))
      mistakes.push(`${key || 'the file'} must be an object`)
    else if (isPlural(builtIn as object)) compareForms((builtIn as { other: string }).other, replacement, key)
    else compareKeys(builtIn as Record<string, unknown>, replacement as Record<string, unknown>, key)
  }

  function compareKeys(
    builtIn: Record<string, unknown>,
    replacement: Record<string, unknown>,
    key: string,
  ): void {
    for (const [name, value] of Object.entries(replacement)) {
      const fullKey = key ? `${key}.${name}` : name
      if (Object.hasOwn(builtIn, name)) compare(builtIn[name], value, fullKey)
      else
        mistakes.push(`${fullKey.slice(0, 2 * MAX_NAME_LENGTH)} is no text here${suggestion(name, builtIn)}`)
    }
  }

  function compareList(builtIn: readonly unknown[], replacement: unknown, key: string): void {
    if (!Array.isArray(replacement) || replacement.length !== builtIn.length)
      return void mistakes.push(`${key} must be a list of ${builtIn.length}`)
    for (const [index, value] of builtIn.entries()) compare(value, replacement[index], `${key}.${index}`)
  }

  function compareForms(builtIn: string, replacement: object, key: string): void {
    for (const [form, text] of Object.entries(replacement)) {
      if (forms.includes(form)) compareText(builtIn, text, `${key}.${form}`, form)
      else mistakes.push(`${key}.${form} is no plural form of this language, which has ${forms.join(', ')}`)
    }
  }

  function compareText(builtIn: string, replacement: unknown, key: string, form?: string): void {
    const mistake = typeof replacement === 'string' ? mistakeIn(builtIn, replacement, form) : 'must be a text'
    if (mistake === null) return
    const content = REQUIRED_CONTENT.find(([pattern]) => pattern.test(key))?.[1]
    mistakes.push(`${key} ${mistake}${content ? `: ${content} would be lost` : ''}`)
  }
}

/** The first mistake in the replacement of one text; null if there is none. */
function mistakeIn(builtIn: string, replacement: string, form: string | undefined): string | null {
  if (replacement.length > MAX_TEXT_LENGTH) return `has more than ${MAX_TEXT_LENGTH} characters`
  if (!replacement.isWellFormed() || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(replacement))
    return 'contains a line break or another control character'
  if (replacement.replace(/[\p{C}\p{Z}]/gu, '') === '') return 'is empty'
  const [expectedNames, actualNames] = [placeholdersOf(builtIn), placeholdersOf(replacement)]
  const missingNames = [...expectedNames.difference(actualNames)].filter(
    name => !(name === 'count' && form !== undefined && form !== 'other'),
  )
  if (missingNames.length > 0) return `lacks ${inBraces(missingNames)}`
  const unknownNames = [...actualNames.difference(expectedNames)]
  if (unknownNames.length > 0) return `has ${inBraces(unknownNames)}, into which nothing is put`
  return null
}

function inBraces(names: readonly string[]): string {
  return names.map(name => `{${name}}`).join(', ')
}

function suggestion(name: string, builtIn: object): string {
  const nearest = name.length <= MAX_NAME_LENGTH ? nearestName(name, Object.keys(builtIn), 3) : null
  return nearest ? `: did you mean ${nearest}?` : ''
}

/** The texts, each replaced by its replacement if there is one. */
export function replace(texts: unknown, replacement: unknown): unknown {
  if (replacement === undefined) return texts
  if (typeof texts !== 'object' || texts === null || Array.isArray(texts)) return replacement
  const replacementsByKey = replacement as Record<string, unknown>
  return Object.fromEntries(
    Object.entries(texts).map(([key, value]) => [key, replace(value, replacementsByKey[key])]),
  )
}
