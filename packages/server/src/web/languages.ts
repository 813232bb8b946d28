import type { Hono, Next } from 'hono'
import { html } from 'hono/html'
import { inLanguage, texts } from '../languages/current.ts'
import { FALLBACK, isLanguage, LANGUAGES, type Language } from '../languages/languages.ts'
import { lookUp, negotiate } from '../languages/negotiation.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { languageForm } from './language-choice.ts'
import { formToken } from './layout.ts'
import { ownPath } from './theme.ts'

/**
 * Answers each request in a language: what was chosen in this browser, else what it asks for. Before anything can fail, so that
 * errors are in it too.
 */
export function answerInLanguage(app: Hono<PageVariables>, kit: PageKit): void {
  app.use(async (c, next) => {
    const chosen =
      kit.cookies.language(c) ?? (await askedByApp(kit, c)) ?? negotiate(c.req.header('accept-language'))
    return answerIn(kit, isForAdministrators(c) ? FALLBACK : (chosen ?? FALLBACK), next)
  })
}

/** The choice of the person who is signed in comes first. */
export function answerInChosenLanguage(app: Hono<PageVariables>, kit: PageKit): void {
  app.use((c, next) => {
    const locale = c.get('signedIn')?.user.locale
    const chosen = locale && !isForAdministrators(c) ? lookUp(locale) : null
    return chosen ? answerIn(kit, chosen, next) : next()
  })
}

async function answerIn(kit: PageKit, language: Language, next: Next): Promise<void> {
  return inLanguage(await kit.localizations.in(language), next)
}

/** The pages for administrators are in English. */
function isForAdministrators({ req: { path } }: PageContext): boolean {
  return path === '/admin' || path.startsWith('/admin/')
}

/** Where apps may send `ui_locales` (OpenID Connect Core section 3.1.2.1, RP-Initiated Logout 1.0 section 2). */
const ASKED_AT = ['/oauth/authorize', '/oauth/logout']

/** What an app asks for, remembered for the pages of this sign-in. */
async function askedByApp(kit: PageKit, c: PageContext): Promise<Language | null> {
  if (!ASKED_AT.includes(c.req.path)) return null
  const { localesOf } = await kit.authorizations()
  const tags = localesOf(new URL(c.req.url).searchParams)
  const found = tags.map(lookUp).find(language => language !== null) ?? null
  if (found) kit.cookies.rememberLanguage(c, found)
  return found
}

/** GET /language: all of them. POST /language: keeps the choice in the account, or in a cookie where nobody is signed in. */
export function languagePages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/language', c => {
    const { language } = texts.nav
    const form = languageForm(c.req.query('return_to') ?? '/', formToken(kit.forms.token(c)))
    return kit.render(
      c,
      { title: language },
      html`<section class="card"><h1>${language}</h1>${form}</section>`,
    )
  })
  app.post('/language', async c => {
    const fields = kit.forms.read(c)
    const choice = fields.get('language') ?? ''
    const user = c.get('signedIn')?.user
    if (isLanguage(choice)) {
      kit.cookies.setLanguage(c, choice)
      if (user) await kit.users.setLocale(user.id, LANGUAGES[choice].tag)
    }
    return c.redirect(ownPath(fields.get('return_to'), kit.publicUrl) ?? '/', 303)
  })
}
