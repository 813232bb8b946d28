import { nearestName } from '../nearest-name.ts'
import { isPlural, placeholdersOf } from './text.ts'

/** Longer than any of ours; pages and mails stay usable. */
const MAX_TEXT_LENGTH = 2000
/** Mistakes that are listed of one file. */
const MAX_MISTAKES = 20
/** Longest name for which a similar one is searched. */
const MAX_NAME_LENGTH = 60

/** What a mail must say, whoever wrote its texts: said when it is lost. */
const NEEDED: [key: RegExp, what: string][] = [
  [/^mails\.(.+\.button|keysButton)$/, 'the button of the mail'],
  [/^mails\.expires$/, 'the note that the link and the code expire after 5 minutes'],
  [/^mails\..+\.ignore$/, 'the note that the mail can be ignored'],
  [/^mails\.support$/, 'the support contact of every mail'],
]

/**
 * What is wrong with the texts that an operator wrote for a language, as sentences that begin with the key. A part of them is
 * enough; what there is must have the form of the English ones: the same keys, placeholders, and the plural forms of the
 * language.
 */
export function mistakesIn(replaced: unknown, english: unknown, forms: readonly string[]): string[] {
  const mistakes: string[] = []
  compare(english, replaced, '')
  return mistakes.length > MAX_MISTAKES
    ? [...mistakes.slice(0, MAX_MISTAKES), `and ${mistakes.length - MAX_MISTAKES} more`]
    : mistakes

  function compare(ours: unknown, theirs: unknown, key: string): void {
    if (typeof ours === 'string') compareText(ours, theirs, key)
    else if (Array.isArray(ours)) compareList(ours, theirs, key)
    else if (typeof theirs !== 'object' || theirs === null || Array.isArray(theirs))
      mistakes.push(`${key || 'the file'} must be an object`)
    else if (isPlural(ours as object)) compareForms((ours as { other: string }).other, theirs, key)
    else compareKeys(ours as Record<string, unknown>, theirs as Record<string, unknown>, key)
  }

  function compareKeys(ours: Record<string, unknown>, theirs: Record<string, unknown>, key: string): void {
    for (const [name, value] of Object.entries(theirs)) {
      const whole = key ? `${key}.${name}` : name
      if (Object.hasOwn(ours, name)) compare(ours[name], value, whole)
      else mistakes.push(`${whole.slice(0, 2 * MAX_NAME_LENGTH)} is no text here${suggestion(name, ours)}`)
    }
  }

  function compareList(ours: readonly unknown[], theirs: unknown, key: string): void {
    if (!Array.isArray(theirs) || theirs.length !== ours.length)
      return void mistakes.push(`${key} must be a list of ${ours.length}`)
    for (const [index, value] of ours.entries()) compare(value, theirs[index], `${key}.${index}`)
  }

  function compareForms(ours: string, theirs: object, key: string): void {
    for (const [form, text] of Object.entries(theirs)) {
      if (forms.includes(form)) compareText(ours, text, `${key}.${form}`, form)
      else mistakes.push(`${key}.${form} is no plural form of this language, which has ${forms.join(', ')}`)
    }
  }

  function compareText(ours: string, theirs: unknown, key: string, form?: string): void {
    const reason = typeof theirs === 'string' ? whyWrong(ours, theirs, form) : 'must be a text'
    if (reason === null) return
    const needed = NEEDED.find(([pattern]) => pattern.test(key))?.[1]
    mistakes.push(`${key} ${reason}${needed ? `: ${needed} would be lost` : ''}`)
  }
}

/** Null: nothing. */
function whyWrong(ours: string, theirs: string, form: string | undefined): string | null {
  if (theirs.length > MAX_TEXT_LENGTH) return `has more than ${MAX_TEXT_LENGTH} characters`
  if (!theirs.isWellFormed() || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(theirs))
    return 'contains a line break or another control character'
  if (theirs.replace(/[\p{C}\p{Z}]/gu, '') === '') return 'is empty'
  const [wanted, found] = [placeholdersOf(ours), placeholdersOf(theirs)]
  const lost = [...wanted.difference(found)].filter(
    name => !(name === 'count' && form !== undefined && form !== 'other'),
  )
  if (lost.length > 0) return `lacks ${inBraces(lost)}`
  const more = [...found.difference(wanted)]
  if (more.length > 0) return `has ${inBraces(more)}, into which nothing is put`
  return null
}

function inBraces(names: readonly string[]): string {
  return names.map(name => `{${name}}`).join(', ')
}

function suggestion(name: string, ours: object): string {
  const nearest = name.length <= MAX_NAME_LENGTH ? nearestName(name, Object.keys(ours), 3) : null
  return nearest ? `: did you mean ${nearest}?` : ''
}

/** The texts with those that replace some of them. */
export function replace(texts: unknown, replaced: unknown): unknown {
  if (replaced === undefined) return texts
  if (typeof texts !== 'object' || texts === null || Array.isArray(texts)) return replaced
  const changes = replaced as Record<string, unknown>
  return Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, replace(value, changes[key])]))
}
