import { isLanguage, LANGUAGES, type Language } from './languages.ts'

/** How many characters and language ranges of an `Accept-Language` header are read. Browsers send fewer. */
const MAX_HEADER_LENGTH = 1000
const MAX_RANGES = 32
/** Maximum length of a language tag. RFC 5646 section 4.4.1 asks implementations to allow at least this length. */
const MAX_TAG_LENGTH = 35

/** A language range and its weight, which has at most three decimal places (RFC 9110 section 12.4.2). */
const RANGE = /^(\*|[a-z]{1,8}(?:-[a-z0-9]{1,8})*)(?:\s*;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i

/**
 * The supported language that a browser prefers (RFC 9110 section 12.5.4); null if the header is absent or names none.
 * The range `*` and malformed ranges are skipped.
 */
export function negotiate(acceptLanguage: string | undefined): Language | null {
  const ranges = (acceptLanguage ?? '')
    .slice(0, MAX_HEADER_LENGTH)
    .split(',', MAX_RANGES)
    .flatMap(text => {
      const [, range, quality = '1'] = RANGE.exec(text.trim()) ?? []
      return range ? [{ range, quality: Number(quality) }] : []
    })
    .filter(({ quality }) => quality > 0)
    .sort((left, right) => right.quality - left.quality)
  for (const { range } of ranges) {
    const language = lookUp(range)
    if (language) return language
  }
  return null
}

/** The supported language of a tag or range (RFC 4647 section 3.4), by its first subtag; null if there is none. */
export function lookUp(tag: string): Language | null {
  const [language = ''] = tag.toLowerCase().split('-')
  return isLanguage(language) ? language : null
}

/** A tag in its canonical form (RFC 5646 section 4.5), for example `de-AT`; null if it is malformed or too long. */
export function parseLocale(text: string): string | null {
  if (text.length > MAX_TAG_LENGTH) return null
  try {
    return Intl.getCanonicalLocales(text)[0] ?? null
  } catch {
    return null
  }
}

/** The tag of the language that `negotiate` finds; null if it finds none. */
export function localeOf(acceptLanguage: string | undefined): string | null {
  const language = negotiate(acceptLanguage)
  return language && LANGUAGES[language].tag
}
