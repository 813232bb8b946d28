import type { texts as english } from './en/index.ts'
import type { PluralForms, WithKnownPlaceholders } from './text.ts'

export interface LanguageFacts {
  /** The name of the language, in the language itself. */
  name: string
  /** The language tag (BCP 47) for the attribute `lang` of pages and mails. */
  tag: string
  direction: 'ltr' | 'rtl'
  /** The locale of dates and numbers (BCP 47). */
  formatLocale: string
  load(): Promise<unknown>
}

/**
 * The languages, in the order of the language chooser. A language does not compile if a text or a placeholder is
 * missing (`Translation`, in its own files) or if a text has a placeholder that nothing fills
 * (`withKnownPlaceholders`, here).
 */
export const LANGUAGES = {
  en: {
    name: 'English',
    tag: 'en',
    direction: 'ltr',
    formatLocale: 'en-GB',
    load: async () => (await import('./en/index.ts')).texts,
  },
  de: {
    name: 'Deutsch',
    tag: 'de',
    direction: 'ltr',
    formatLocale: 'de',
    load: async () => withKnownPlaceholders((await import('./de/index.ts')).texts),
  },
  fr: {
    name: 'Français',
    tag: 'fr',
    direction: 'ltr',
    formatLocale: 'fr',
    load: async () => withKnownPlaceholders((await import('./fr/index.ts')).texts),
  },
  es: {
    name: 'Español',
    tag: 'es',
    direction: 'ltr',
    formatLocale: 'es',
    load: async () => withKnownPlaceholders((await import('./es/index.ts')).texts),
  },
  pt: {
    name: 'Português',
    tag: 'pt-BR',
    direction: 'ltr',
    formatLocale: 'pt-BR',
    load: async () => withKnownPlaceholders((await import('./pt/index.ts')).texts),
  },
  it: {
    name: 'Italiano',
    tag: 'it',
    direction: 'ltr',
    formatLocale: 'it',
    load: async () => withKnownPlaceholders((await import('./it/index.ts')).texts),
  },
  nl: {
    name: 'Nederlands',
    tag: 'nl',
    direction: 'ltr',
    formatLocale: 'nl',
    load: async () => withKnownPlaceholders((await import('./nl/index.ts')).texts),
  },
  pl: {
    name: 'Polski',
    tag: 'pl',
    direction: 'ltr',
    formatLocale: 'pl',
    load: async () => withKnownPlaceholders((await import('./pl/index.ts')).texts),
  },
  tr: {
    name: 'Türkçe',
    tag: 'tr',
    direction: 'ltr',
    formatLocale: 'tr',
    load: async () => withKnownPlaceholders((await import('./tr/index.ts')).texts),
  },
  ja: {
    name: '日本語',
    tag: 'ja',
    direction: 'ltr',
    formatLocale: 'ja',
    load: async () => withKnownPlaceholders((await import('./ja/index.ts')).texts),
  },
  zh: {
    name: '简体中文',
    tag: 'zh-Hans',
    direction: 'ltr',
    formatLocale: 'zh-CN',
    load: async () => withKnownPlaceholders((await import('./zh/index.ts')).texts),
  },
  ar: {
    name: 'العربية',
    tag: 'ar',
    direction: 'rtl',
    formatLocale: 'ar-u-nu-latn',
    load: async () => withKnownPlaceholders((await import('./ar/index.ts')).texts),
  },
} as const satisfies Record<keyof PluralForms, LanguageFacts>

export type Language = keyof typeof LANGUAGES

export const FALLBACK_LANGUAGE = 'en' satisfies Language

/** Returns the texts. Does not compile if one of them has a placeholder that the English text does not have. */
export function withKnownPlaceholders<Texts>(
  texts: Texts & WithKnownPlaceholders<typeof english, Texts>,
): Texts {
  return texts
}

export function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text)
}
