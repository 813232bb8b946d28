import type { Hono, Next } from 'hono'
import { html } from 'hono/html'
import { inLanguage, texts } from '../languages/current.ts'
import { FALLBACK_LANGUAGE, isLanguage, LANGUAGES, type Language } from '../languages/languages.ts'
import { lookUp, negotiate } from '../languages/negotiation.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { languageForm } from './language-choice.ts'
import { formToken } from './layout.ts'
import { ownPath } from './theme.ts'

/**
 * Sets the language of each response: the one chosen in this browser, otherwise the one that the app or the browser
 * requests, otherwise English. Pages for administrators are always in English. Must run first, so that error pages use
 * the language too.
 */
export function answerInLanguage(app: Hono<PageVariables>, kit: PageKit): void {
  app.use(async (c, next) => {
    const language =
      kit.cookies.language(c) ??
      (await languageRequestedByApp(kit, c)) ??
      negotiate(c.req.header('accept-language'))
    return answerIn(kit, isForAdministrators(c) ? FALLBACK_LANGUAGE : (language ?? FALLBACK_LANGUAGE), next)
  })
}

/**
 * Sets the language of each response to the one in the signed-in person's account, if it has one; pages for
 * administrators stay in English. Must run after authentication.
 */
export function answerInChosenLanguage(app: Hono<PageVariables>, kit: PageKit): void {
  app.use((c, next) => {
    const locale = c.get('signedIn')?.user.locale
    const language = locale && !isForAdministrators(c) ? lookUp(locale) : null
    return language ? answerIn(kit, language, next) : next()
  })
}

async function answerIn(kit: PageKit, language: Language, next: Next): Promise<void> {
  return inLanguage(await kit.localizations.in(language), next)
}

function isForAdministrators({ req: { path } }: PageContext): boolean {
  return path === '/admin' || path.startsWith('/admin/')
}

/** Endpoints to which apps may send `ui_locales` (OpenID Connect Core 3.1.2.1, RP-Initiated Logout 1.0 section 2). */
const UI_LOCALES_PATHS = ['/oauth/authorize', '/oauth/logout']

/**
 * The first supported language that an app requests, which is also remembered for the pages of this sign-in; null if
 * the app requests none, and for other paths.
 */
async function languageRequestedByApp(kit: PageKit, c: PageContext): Promise<Language | null> {
  if (!UI_LOCALES_PATHS.includes(c.req.path)) return null
  const { localesOf } = await kit.authorizations()
  const tags = localesOf(new URL(c.req.url).searchParams)
  const language = tags.map(lookUp).find(each => each !== null) ?? null
  if (language) kit.cookies.rememberLanguage(c, language)
  return language
}

/** GET /language: the list of languages. POST /language: stores the choice in a cookie and in the person's account. */
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
