/** The plural categories of each language (CLDR). A text that depends on a number has one form for each category. */
export interface PluralForms {
  en: 'one' | 'other'
  de: 'one' | 'other'
  fr: 'one' | 'many' | 'other'
  es: 'one' | 'many' | 'other'
  pt: 'one' | 'many' | 'other'
  it: 'one' | 'many' | 'other'
  nl: 'one' | 'other'
  pl: 'one' | 'few' | 'many' | 'other'
  tr: 'one' | 'other'
  ja: 'other'
  zh: 'other'
  ar: 'zero' | 'one' | 'two' | 'few' | 'many' | 'other'
}

/**
 * A text that depends on a number: an object with a text for each plural category of its language (CLDR), chosen by
 * `{count}`. All other texts are strings, which may have placeholders: `Sign in to {product}`.
 */
export type Plural = { readonly other: string } & { readonly [Form in Intl.LDMLPluralRule]?: string }

/** The value of a placeholder. Numbers are formatted for the language. */
export type Value = string | number

/** The names of a text's placeholders. */
type Placeholder<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never

type IsPlural<Text> = Text extends { one: string; other: string } ? true : false

/** The texts as pages use them: each text with placeholders is a function of the placeholders' values. */
export type PreparedTexts<Texts> = Texts extends string
  ? [Placeholder<Texts>] extends [never]
    ? string
    : TextTemplate<Placeholder<Texts>>
  : Texts extends { one: string; other: infer Other extends string }
    ? TextTemplate<Exclude<Placeholder<Other>, 'count'>, { count: number }>
    : { readonly [Key in keyof Texts]: PreparedTexts<Texts[Key]> }

/** A text with placeholders as pages use it: a function of the placeholders' values. */
export type TextTemplate<Names extends string, OtherValues = unknown> = (
  values: Record<Names, Value> & OtherValues,
) => string

/**
 * The shape of English texts in another language: the same keys, and in each text at least the same placeholders. Any
 * form of a plural except `other` may leave out `{count}`.
 */
export type Translation<English, To extends keyof PluralForms> = English extends string
  ? TextWith<Placeholder<English>>
  : IsPlural<English> extends true
    ? English extends { other: infer Other extends string }
      ? {
          readonly [Form in PluralForms[To]]: TextWith<
            Form extends 'other' ? Placeholder<Other> : Exclude<Placeholder<Other>, 'count'>
          >
        }
      : never
    : { readonly [Key in keyof English]: Translation<English[Key], To> }

/** A text that has all of these placeholders. */
type TextWith<Names extends string> = [Names] extends [never]
  ? string
  : (Names extends string ? (name: `${string}{${Names}}${string}`) => void : never) extends (
        name: infer All,
      ) => void
    ? All
    : never

/** The texts themselves, with `never` in place of each text that has a placeholder which the English one lacks. */
export type WithKnownPlaceholders<English, Texts> = Texts extends string
  ? Exclude<Placeholder<Texts>, PlaceholdersOf<English>> extends never
    ? Texts
    : never
  : {
      [Key in keyof Texts]: IsPlural<English> extends true
        ? WithKnownPlaceholders<English, Texts[Key]>
        : Key extends keyof English
          ? WithKnownPlaceholders<English[Key], Texts[Key]>
          : never
    }

type PlaceholdersOf<English> = English extends string
  ? Placeholder<English>
  : English extends { other: infer Other extends string }
    ? Placeholder<Other> | 'count'
    : never

const PLACEHOLDER = /\{(\w+)\}/g

export function placeholdersOf(text: string): Set<string> {
  return new Set([...text.matchAll(PLACEHOLDER)].map(([, name]) => name!))
}

/** Whether the object contains the plural forms of one text, rather than several texts. */
export function isPlural(texts: object): texts is Plural {
  return 'other' in texts && ('one' in texts || Object.keys(texts).length === 1)
}

/** FSI and PDI (UAX #9). The direction of a value between them is that of its own first letter. */
const [ISOLATE, END_OF_ISOLATE] = ['\u2068', '\u2069']

/**
 * Turns texts with placeholders into functions of their values. `rules` chooses plural forms, `numbers` formats
 * numbers. In right-to-left texts each value that is a string is isolated: otherwise an address or a key’s prefix would
 * exchange places with the punctuation around it.
 */
export function prepare<Texts>(
  texts: Texts,
  rules: () => Intl.PluralRules,
  numbers: () => Intl.NumberFormat,
  direction: 'ltr' | 'rtl',
): PreparedTexts<Texts> {
  const isolate = (value: string) => (direction === 'rtl' ? `${ISOLATE}${value}${END_OF_ISOLATE}` : value)
  const fillPlaceholders = (text: string, values: Record<string, Value>) =>
    text.replace(PLACEHOLDER, (whole, name: string) => {
      const value = values[name]
      if (typeof value === 'number') return numbers().format(value)
      return value === undefined ? whole : isolate(value)
    })
  const prepareTexts = (texts: unknown): unknown => {
    if (typeof texts === 'string')
      return texts.includes('{') ? (values: Record<string, Value>) => fillPlaceholders(texts, values) : texts
    if (Array.isArray(texts)) return texts.map(prepareTexts)
    if (isPlural(texts as object)) {
      const forms = texts as Plural
      return (values: Record<string, Value>) =>
        fillPlaceholders(forms[rules().select(values.count as number)] ?? forms.other, values)
    }
    return Object.fromEntries(
      Object.entries(texts as object).map(([key, value]) => [key, prepareTexts(value)]),
    )
  }
  return prepareTexts(texts) as PreparedTexts<Texts>
}
