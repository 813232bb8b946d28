import { AsyncLocalStorage } from 'node:async_hooks'
import { texts as english } from './en/index.ts'
import { createLocalization, type Localization, type Texts } from './localization.ts'

const storage = new AsyncLocalStorage<Localization>()
let fallback: Localization | undefined

/** Answers a request in a language: everything that `work` awaits sees it in `texts` and `localization`. */
export function inLanguage<Result>(of: Localization, work: () => Result): Result {
  return storage.run(of, work)
}

/** Of the current request; English outside of one. */
export function localization(): Localization {
  fallback ??= createLocalization('en', english)
  return storage.getStore() ?? fallback
}

/** All texts for people, in the language of the current request. Never to be read while a module is loaded. */
export const texts: Texts = new Proxy({} as Texts, {
  get: (_, section) => localization().texts[section as keyof Texts],
})
