import { DAY, HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'
import type { texts as english } from './en/index.ts'
import { LANGUAGES, type Language } from './languages.ts'
import { replace } from './replacements.ts'
import { prepare, type Ready } from './text.ts'

export type Texts = Ready<typeof english>

/** Everything that is written for people, in one language. */
export interface Localization {
  readonly language: Language
  /** For the `lang` and `dir` of a document. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  readonly texts: Texts
  number(count: number): string
  /** `$2.00`, of a decimal string; a change also has its sign, `+$2.00`. */
  dollars(amount: string, kind?: 'change'): string
  /** Of the day in UTC. */
  date(instant: Instant): string
  /** In UTC, which it says. */
  dateAndTime(instant: Instant): string
  /** `3 minutes ago`, of a duration in seconds. */
  ago(seconds: number): string
  /** `5 minutes`, rounded up, of a time to wait in seconds. */
  duration(seconds: number): string
}

const AGE_UNITS = [
  [DAY / SECOND, 'day'],
  [HOUR / SECOND, 'hour'],
  [MINUTE / SECOND, 'minute'],
] as const

/** `texts` is what the language's folder has, with the operator's replacements. */
export function createLocalization(language: Language, texts: unknown): Localization {
  const { tag, direction, formats } = LANGUAGES[language]
  // Created on first use: they take milliseconds, which no start of the process should wait for.
  const numbers = once(() => new Intl.NumberFormat(formats))
  const money = once(() => new Intl.NumberFormat(direction === 'rtl' ? 'en' : formats, MONEY))
  const changes = once(() => new Intl.NumberFormat(direction === 'rtl' ? 'en' : formats, CHANGE))
  const dates = once(() => new Intl.DateTimeFormat(formats, { dateStyle: 'medium', timeZone: 'UTC' }))
  const times = once(() => new Intl.DateTimeFormat(formats, TIME))
  const ages = once(() => new Intl.RelativeTimeFormat(formats))
  const plurals = once(() => new Intl.PluralRules(language))
  const ready = prepare(texts as typeof english, plurals, numbers, direction)
  return {
    language,
    tag,
    direction,
    texts: ready,
    number: count => numbers().format(count),
    dollars(amount, kind) {
      const text = (kind ? changes() : money()).format(amount as Intl.StringNumericLiteral)
      return direction === 'rtl' ? LEFT_TO_RIGHT + text : text
    },
    date: instant => dates().format(instant),
    dateAndTime: instant => `${times().format(instant)} UTC`,
    ago(seconds) {
      const [size, unit] = AGE_UNITS.find(([size]) => seconds >= size) ?? []
      return size ? ages().format(-Math.floor(seconds / size), unit!) : ready.units.justNow
    },
    duration(seconds) {
      const { units } = ready
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

const TIME = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' } as const
/** Amounts have 2 to 6 decimal places. */
const MONEY = {
  style: 'currency',
  currency: 'USD',
  currencyDisplay: 'narrowSymbol',
  minimumFractionDigits: 2,
  maximumFractionDigits: 6,
} as const
const CHANGE = { ...MONEY, signDisplay: 'exceptZero' } as const

/** U+200E. An amount is read from left to right; without it, its sign and symbol would move to the other side. */
const LEFT_TO_RIGHT = '\u200e'

export interface Localizations {
  /** Loads the language's texts on first use. */
  in(language: Language): Promise<Localization>
}

/** @param replaced what the operator's files have, by language */
export function createLocalizations(replaced: ReadonlyMap<Language, unknown> = new Map()): Localizations {
  const loaded = new Map<Language, Promise<Localization>>()
  return {
    in(language) {
      let localization = loaded.get(language)
      if (!localization) {
        localization = load(language)
        loaded.set(language, localization)
        // So that the next request tries again.
        localization.catch(() => loaded.delete(language))
      }
      return localization
    },
  }

  async function load(language: Language): Promise<Localization> {
    const texts = await LANGUAGES[language].load()
    return createLocalization(language, replace(texts, replaced.get(language)))
  }
}
