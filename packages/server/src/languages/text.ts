/** The plural categories of each language (CLDR), in which its counting texts are written. */
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
 * A text with placeholders, `Sign in to {product}`; or one that counts, as an object with a text for each plural category
 * of its language (CLDR), chosen by `{count}`.
 */
export type Plural = { readonly other: string } & { readonly [Form in Intl.LDMLPluralRule]?: string }

/** What is put into a placeholder. Numbers are written as the language does. */
export type Value = string | number

/** The names of a text's placeholders. */
type Placeholder<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never

type IsPlural<Text> = Text extends { one: string; other: string } ? true : false

/** The texts as pages use them: those with placeholders are functions of their values. */
export type Ready<Texts> = Texts extends string
  ? [Placeholder<Texts>] extends [never]
    ? string
    : Fill<Placeholder<Texts>>
  : Texts extends { one: string; other: infer Other extends string }
    ? Fill<Exclude<Placeholder<Other>, 'count'>, { count: number }>
    : { readonly [Key in keyof Texts]: Ready<Texts[Key]> }

export type Fill<Names extends string, More = unknown> = (values: Record<Names, Value> & More) => string

/**
 * The shape of English texts in another language: the same keys, and in each text at least the same placeholders. A form
 * of a plural may leave out `{count}`, unless it is the general one.
 */
export type Translation<English, To extends keyof PluralForms> = English extends string
  ? With<Placeholder<English>>
  : IsPlural<English> extends true
    ? English extends { other: infer Other extends string }
      ? {
          readonly [Form in PluralForms[To]]: With<
            Form extends 'other' ? Placeholder<Other> : Exclude<Placeholder<Other>, 'count'>
          >
        }
      : never
    : { readonly [Key in keyof English]: Translation<English[Key], To> }

/** A text that has all of these placeholders. */
type With<Names extends string> = [Names] extends [never]
  ? string
  : (Names extends string ? (name: `${string}{${Names}}${string}`) => void : never) extends (
        name: infer All,
      ) => void
    ? All
    : never

/** The texts themselves, or `never` in place of each that has a placeholder which English does not have. */
export type Fitting<English, Texts> = Texts extends string
  ? Exclude<Placeholder<Texts>, PlaceholdersOf<English>> extends never
    ? Texts
    : never
  : {
      [Key in keyof Texts]: IsPlural<English> extends true
        ? Fitting<English, Texts[Key]>
        : Key extends keyof English
          ? Fitting<English[Key], Texts[Key]>
          : never
    }

type PlaceholdersOf<English> = English extends string
  ? Placeholder<English>
  : English extends { other: infer Other extends string }
    ? Placeholder<Other> | 'count'
    : never

const PLACEHOLDER = /\{(\w+)\}/g

/** The names of the placeholders in a text. */
export function placeholdersOf(text: string): Set<string> {
  return new Set([...text.matchAll(PLACEHOLDER)].map(([, name]) => name!))
}

/** Whether these are the forms of one text. */
export function isPlural(texts: object): texts is Plural {
  return 'other' in texts && ('one' in texts || Object.keys(texts).length === 1)
}

/** Around a value of which the first letter decides its direction (UAX #9: FSI and PDI). */
const [ISOLATE, END_OF_ISOLATE] = ['\u2068', '\u2069']

/**
 * Makes texts ready for use in a language; `numbers` writes the numbers in them. In texts from right to left each value is
 * isolated: without that, an address or a key’s prefix would exchange places with the punctuation around it.
 */
export function prepare<Texts>(
  texts: Texts,
  rules: () => Intl.PluralRules,
  numbers: () => Intl.NumberFormat,
  direction: 'ltr' | 'rtl',
): Ready<Texts> {
  const isolated = (value: string) => (direction === 'rtl' ? `${ISOLATE}${value}${END_OF_ISOLATE}` : value)
  const filled = (text: string, values: Record<string, Value>) =>
    text.replace(PLACEHOLDER, (whole, name: string) => {
      const value = values[name]
      if (typeof value === 'number') return numbers().format(value)
      return value === undefined ? whole : isolated(value)
    })
  const ready = (texts: unknown): unknown => {
    if (typeof texts === 'string')
      return texts.includes('{') ? (values: Record<string, Value>) => filled(texts, values) : texts
    if (Array.isArray(texts)) return texts.map(ready)
    if (isPlural(texts as object)) {
      const forms = texts as Plural
      return (values: Record<string, Value>) =>
        filled(forms[rules().select(values.count as number)] ?? forms.other, values)
    }
    return Object.fromEntries(Object.entries(texts as object).map(([key, value]) => [key, ready(value)]))
  }
  return ready(texts) as Ready<Texts>
}
