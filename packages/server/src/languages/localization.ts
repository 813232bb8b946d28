import { DAY, HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'
import type { texts as english } from './en/index.ts'
import { LANGUAGES, type Language } from './languages.ts'
import { replace } from './replacements.ts'
import { type PreparedTexts, prepare } from './text.ts'

export type Texts = PreparedTexts<typeof english>

export interface Localization {
  readonly language: Language
  /** For the attributes `lang` and `dir` of a document. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  readonly texts: Texts
  number(count: number): string
  /** A decimal string as `$2.00`. With the kind `change` it has a sign, as `+$2.00`, unless it is zero. */
  dollars(amount: string, kind?: 'change'): string
  /** The date in UTC. */
  date(instant: Instant): string
  /** The date and time in UTC, followed by `UTC`. */
  dateAndTime(instant: Instant): string
  /** A number of seconds as `3 minutes ago`, or as `just now` if it is less than a minute. */
  ago(seconds: number): string
  /** A number of seconds to wait: as `90 seconds`, or from 120 on as minutes or hours, rounded up. */
  duration(seconds: number): string
}

const AGE_UNITS = [
  [DAY / SECOND, 'day'],
  [HOUR / SECOND, 'hour'],
  [MINUTE / SECOND, 'minute'],
] as const

/** @param texts the texts of the language's folder, with the operator's replacements */
export function createLocalization(language: Language, texts: unknown): Localization {
  const { tag, direction, formatLocale } = LANGUAGES[language]
  // Created on first use, since creating them takes milliseconds, which would delay the start of the process.
  const numberFormatter = once(() => new Intl.NumberFormat(formatLocale))
  const moneyFormatter = once(
    () => new Intl.NumberFormat(direction === 'rtl' ? 'en' : formatLocale, MONEY_FORMAT),
  )
  const signedMoneyFormatter = once(
    () => new Intl.NumberFormat(direction === 'rtl' ? 'en' : formatLocale, SIGNED_MONEY_FORMAT),
  )
  const dateFormatter = once(
    () => new Intl.DateTimeFormat(formatLocale, { dateStyle: 'medium', timeZone: 'UTC' }),
  )
  const timeFormatter = once(() => new Intl.DateTimeFormat(formatLocale, TIME_FORMAT))
  const ageFormatter = once(() => new Intl.RelativeTimeFormat(formatLocale))
  const pluralRules = once(() => new Intl.PluralRules(language))
  const preparedTexts = prepare(texts as typeof english, pluralRules, numberFormatter, direction)
  return {
    language,
    tag,
    direction,
    texts: preparedTexts,
    number: count => numberFormatter().format(count),
    dollars(amount, kind) {
      const text = (kind ? signedMoneyFormatter() : moneyFormatter()).format(
        amount as Intl.StringNumericLiteral,
      )
      return direction === 'rtl' ? LEFT_TO_RIGHT_MARK + text : text
    },
    date: instant => dateFormatter().format(instant),
    dateAndTime: instant => `${timeFormatter().format(instant)} UTC`,
    ago(seconds) {
      const [size, unit] = AGE_UNITS.find(([size]) => seconds >= size) ?? []
      return size ? ageFormatter().format(-Math.floor(seconds / size), unit!) : preparedTexts.units.justNow
    },
    duration(seconds) {
      const { units } = preparedTexts
      if (seconds < 120) return units.seconds({ count: seconds })
      const minutes = Math.ceil(seconds / 60)
      return seconds < 7200
        ? units.minutes({ count: minutes })
        : units.hours({ count: Math.ceil(minutes / 60) })
    },
  }
}

function once<Value>(create: () => Value): () => Value {
  let value: Value | undefined
  return () => (value ??= create())
}

const TIME_FORMAT = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' } as const
/** The format of amounts, which have 2 to 6 decimal places. */
const MONEY_FORMAT = {
  style: 'currency',
  currency: 'USD',
  currencyDisplay: 'narrowSymbol',
  minimumFractionDigits: 2,
  maximumFractionDigits: 6,
} as const
const SIGNED_MONEY_FORMAT = { ...MONEY_FORMAT, signDisplay: 'exceptZero' } as const

/** U+200E. Without this mark, right-to-left text would show the sign and symbol of an amount on its other side. */
const LEFT_TO_RIGHT_MARK = '\u200e'

export interface Localizations {
  /** Loads the language's texts on first use. */
  in(language: Language): Promise<Localization>
}

/** @param replacements the operator's own texts, by language */
export function createLocalizations(replacements: ReadonlyMap<Language, unknown> = new Map()): Localizations {
  const localizations = new Map<Language, Promise<Localization>>()
  return {
    in(language) {
      let localization = localizations.get(language)
      if (!localization) {
        localization = load(language)
        localizations.set(language, localization)
        // A failure is not cached, so that the next request tries again.
        localization.catch(() => localizations.delete(language))
      }
      return localization
    },
  }

  async function load(language: Language): Promise<Localization> {
    const texts = await LANGUAGES[language].load()
    return createLocalization(language, replace(texts, replacements.get(language)))
  }
}
