import assert from 'node:assert/strict'
import { test } from 'node:test'
import { texts as english } from '../../src/languages/en/index.ts'
import { LANGUAGES, type Language, withKnownPlaceholders } from '../../src/languages/languages.ts'
import { createLocalizations } from '../../src/languages/localization.ts'
import { isPlural, type Plural, placeholdersOf, type Translation } from '../../src/languages/text.ts'

const localizations = createLocalizations()
const languages = Object.keys(LANGUAGES) as Language[]

const example = {
  plain: 'Sign in',
  named: 'Sign in to {product} at {time}',
  counted: { one: '{count} key of {name}', other: '{count} keys of {name}' },
} as const

test('texts of a language compile only with every text, placeholder and plural form, and no others', () => {
  const german = {
    plain: 'Anmelden',
    named: 'Um {time} bei {product} anmelden',
    counted: { one: 'Ein Schlüssel von {name}', other: '{count} Schlüssel von {name}' },
  } as const satisfies Translation<typeof example, 'de'>
  // @ts-expect-error a text is missing
  const withoutText = { named: german.named, counted: german.counted } satisfies Translation<
    typeof example,
    'de'
  >
  // @ts-expect-error there is no such text
  const withUnknownText = { ...german, other: '' } satisfies Translation<
    typeof example,
    'de'
  > as typeof german
  const germanWithExtraText = { ...german, more: '' } as const
  // @ts-expect-error a placeholder is missing
  const withoutPlaceholder = { ...german, named: 'Um {time} anmelden' } satisfies Translation<
    typeof example,
    'de'
  >
  // @ts-expect-error a plural form is missing
  const withoutPluralForm = { ...german, counted: { other: '{count} {name}' } } satisfies Translation<
    typeof example,
    'de'
  >
  // @ts-expect-error Polish has more forms
  const polish = german satisfies Translation<typeof example, 'pl'>
  // @ts-expect-error the form `other` must contain {count}
  const withoutCount = { ...german, counted: { one: '{name}', other: '{name}' } } satisfies Translation<
    typeof example,
    'de'
  >
  assert.ok([
    withoutText,
    withUnknownText,
    germanWithExtraText,
    withoutPlaceholder,
    withoutPluralForm,
    polish,
    withoutCount,
  ])
})

test('a text with a placeholder that English does not have does not compile', () => {
  const texts = { ...english, nav: { ...english.nav, keys: 'Schlüssel von {somebody}' } } as const
  // @ts-expect-error nothing is put into {somebody}
  assert.equal(withKnownPlaceholders(texts), texts)
  assert.equal(withKnownPlaceholders(english), english)
})

for (const language of languages) {
  test(`the texts in ${LANGUAGES[language].name} have the shape, placeholders and plural forms of the language`, async () => {
    const pluralForms = new Intl.PluralRules(language).resolvedOptions().pluralCategories.toSorted()
    const mismatches: string[] = []
    compare(english, await LANGUAGES[language].load(), '')
    assert.deepEqual(mismatches, [])

    function compare(englishTexts: unknown, translatedTexts: unknown, path: string): void {
      if (typeof englishTexts === 'string') compareTexts(englishTexts, translatedTexts as string, path)
      else if (isPlural(englishTexts as object))
        compareForms(englishTexts as Plural, translatedTexts as Plural, path)
      else if (keysOf(englishTexts) !== keysOf(translatedTexts)) mismatches.push(`${path}: keys`)
      else
        for (const [key, value] of Object.entries(englishTexts as object))
          compare(value, (translatedTexts as Record<string, unknown>)[key], `${path}.${key}`)
    }

    function compareForms(englishForms: Plural, translatedForms: Plural, path: string): void {
      if (keysOf(translatedForms) !== pluralForms.join()) mismatches.push(`${path}: forms`)
      for (const [form, text] of Object.entries(translatedForms))
        compareTexts(englishForms.other, text, `${path}.${form}`, form)
    }

    function compareTexts(englishText: string, translatedText: string, path: string, form?: string): void {
      const [englishPlaceholders, placeholders] = [
        placeholdersOf(englishText),
        placeholdersOf(translatedText),
      ]
      if (form && form !== 'other' && !placeholders.has('count')) englishPlaceholders.delete('count')
      if (englishPlaceholders.symmetricDifference(placeholders).size > 0)
        mismatches.push(`${path}: placeholders`)
      if (translatedText.trim() !== translatedText || translatedText === '')
        mismatches.push(`${path}: empty or with space around it`)
    }
  })

  test(`numbers, dates and ages are written as in ${LANGUAGES[language].name}`, async () => {
    const { number, date, dateAndTime, ago, dollars, texts } = await localizations.in(language)
    const instant = Date.UTC(2026, 10, 20, 19, 22)
    const { formatLocale } = LANGUAGES[language]
    assert.equal(number(12_345), new Intl.NumberFormat(formatLocale).format(12_345))
    assert.match(date(instant), /2026/)
    assert.match(dateAndTime(instant), /22.* UTC$/)
    assert.equal(ago(0), texts.units.justNow)
    assert.equal(ago(7300), new Intl.RelativeTimeFormat(formatLocale).format(-2, 'hour'))
    assert.match(dollars('-0.000001'), /\$/)
    for (const count of [0, 1, 2, 3, 5, 11, 100, 1_000_000])
      assert.doesNotMatch(texts.keys.limit({ count }), /\{/, `${count}`)
  })
}

function keysOf(texts: unknown): string {
  return Object.keys(texts as object)
    .toSorted()
    .join()
}

test('a value is put into a text as it is, even if it looks like a placeholder', async () => {
  const { texts } = await localizations.in('en')
  assert.equal(texts.signIn.heading({ product: '{email} $&' }), 'Sign in to {email} $&')
})

test('a value in a text from right to left is isolated, so that it keeps its own direction', async () => {
  const { texts } = await localizations.in('ar')
  assert.equal(
    texts.account.signsInAs({ email: 'ada@example.com' }).match(/\u2068.*\u2069/)?.[0],
    '\u2068ada@example.com\u2069',
  )
  assert.doesNotMatch(texts.live.milliseconds({ ms: 12 }), /[\u2066-\u2069]/, 'numbers are of the language')
  assert.doesNotMatch(
    (await localizations.in('de')).texts.account.signsInAs({ email: 'a' }),
    /[\u2066-\u2069]/,
  )
})
