import { AsyncLocalStorage } from 'node:async_hooks'
import type { Localization, Texts } from './localization.ts'

const storage = new AsyncLocalStorage<Localization>()

/** Answers a request in a language: everything that `work` awaits sees it in `texts` and `localization`. */
export function inLanguage<Result>(of: Localization, work: () => Result): Result {
  return storage.run(of, work)
}

/** Of the current request. */
export function localization(): Localization {
  const current = storage.getStore()
  if (!current) throw new Error('texts are read outside of a request')
  return current
}

/** All texts for people, in the language of the current request. Not to be read while a module is loaded. */
export const texts: Texts = new Proxy({} as Texts, {
  get: (_, section) => localization().texts[section as keyof Texts],
})
