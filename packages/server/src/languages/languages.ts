import type { texts as english } from './en/index.ts'
import type { Fitting, PluralForms } from './text.ts'

export interface LanguageFacts {
  /** Its own name. */
  name: string
  /** BCP 47, as in the `lang` of pages and mails. */
  tag: string
  direction: 'ltr' | 'rtl'
  /** Of dates and numbers. */
  formats: string
  /** The texts, which are loaded on first use. */
  load(): Promise<unknown>
}

/**
 * In the order of the language chooser. Texts that lack one, or a placeholder, or have one that nothing is put into, do not
 * compile: `Translation` in their own files, `fitting` here.
 */
export const LANGUAGES = {
  en: {
    name: 'English',
    tag: 'en',
    direction: 'ltr',
    formats: 'en-GB',
    load: async () => (await import('./en/index.ts')).texts,
  },
  de: {
    name: 'Deutsch',
    tag: 'de',
    direction: 'ltr',
    formats: 'de',
    load: async () => fitting((await import('./de/index.ts')).texts),
  },
  fr: {
    name: 'Français',
    tag: 'fr',
    direction: 'ltr',
    formats: 'fr',
    load: async () => fitting((await import('./fr/index.ts')).texts),
  },
  es: {
    name: 'Español',
    tag: 'es',
    direction: 'ltr',
    formats: 'es',
    load: async () => fitting((await import('./es/index.ts')).texts),
  },
  pt: {
    name: 'Português',
    tag: 'pt-BR',
    direction: 'ltr',
    formats: 'pt-BR',
    load: async () => fitting((await import('./pt/index.ts')).texts),
  },
  it: {
    name: 'Italiano',
    tag: 'it',
    direction: 'ltr',
    formats: 'it',
    load: async () => fitting((await import('./it/index.ts')).texts),
  },
  nl: {
    name: 'Nederlands',
    tag: 'nl',
    direction: 'ltr',
    formats: 'nl',
    load: async () => fitting((await import('./nl/index.ts')).texts),
  },
  pl: {
    name: 'Polski',
    tag: 'pl',
    direction: 'ltr',
    formats: 'pl',
    load: async () => fitting((await import('./pl/index.ts')).texts),
  },
  tr: {
    name: 'Türkçe',
    tag: 'tr',
    direction: 'ltr',
    formats: 'tr',
    load: async () => fitting((await import('./tr/index.ts')).texts),
  },
  ja: {
    name: '日本語',
    tag: 'ja',
    direction: 'ltr',
    formats: 'ja',
    load: async () => fitting((await import('./ja/index.ts')).texts),
  },
  zh: {
    name: '简体中文',
    tag: 'zh-Hans',
    direction: 'ltr',
    formats: 'zh-CN',
    load: async () => fitting((await import('./zh/index.ts')).texts),
  },
  ar: {
    name: 'العربية',
    tag: 'ar',
    direction: 'rtl',
    formats: 'ar-u-nu-latn',
    load: async () => fitting((await import('./ar/index.ts')).texts),
  },
} as const satisfies Record<keyof PluralForms, LanguageFacts>

export type Language = keyof typeof LANGUAGES

/** Used where nobody asked for a language that there is. */
export const FALLBACK = 'en' satisfies Language

export function fitting<Texts>(texts: Texts & Fitting<typeof english, Texts>): Texts {
  return texts
}

export function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text)
}
