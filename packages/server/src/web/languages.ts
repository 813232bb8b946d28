import type { Hono } from 'hono'
import { inLanguage } from '../languages/current.ts'
import { FALLBACK, type Language } from '../languages/languages.ts'
import { negotiate } from '../languages/negotiation.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'

/** Answers each request in the language that the browser wants; pages of administrators are in English. */
export function answerInLanguage(app: Hono<PageVariables>, kit: Pick<PageKit, 'localizations'>): void {
  app.use(async (c, next) => inLanguage(await kit.localizations.in(languageOf(c)), next))
}

function languageOf(c: PageContext): Language {
  if (c.req.path === '/admin' || c.req.path.startsWith('/admin/')) return FALLBACK
  return negotiate(c.req.header('accept-language')) ?? FALLBACK
}
