import { AsyncLocalStorage } from 'node:async_hooks'
import type { Localization, Texts } from './localization.ts'

const storage = new AsyncLocalStorage<Localization>()

/** Runs `work` so that `texts` and `localization()` have this language in everything that it calls and awaits. */
export function inLanguage<Result>(language: Localization, work: () => Result): Result {
  return storage.run(language, work)
}

/** The localization of the current request. @throws Error outside of `inLanguage` */
export function localization(): Localization {
  const requestLocalization = storage.getStore()
  if (!requestLocalization) throw new Error('texts are read outside of a request')
  return requestLocalization
}

/**
 * All texts for people, in the language of the current request. Reading them outside of `inLanguage` throws, for
 * example while a module is loaded.
 */
export const texts: Texts = new Proxy({} as Texts, {
  get: (_, section) => localization().texts[section as keyof Texts],
})
