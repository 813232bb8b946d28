import type { Hono } from 'hono'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { THEME_CHOICES } from './theme-choice.ts'

/** POST /theme: stores the choice in a cookie; the choice of the system's theme deletes the cookie. */
export function themePages(app: Hono<PageVariables>, kit: PageKit): void {
  app.post('/theme', c => {
    const fields = kit.forms.read(c)
    const choice = THEME_CHOICES.find(each => each === fields.get('theme'))
    if (choice) kit.cookies.setTheme(c, choice)
    return c.redirect(ownPath(fields.get('return_to'), kit.publicUrl) ?? '/', 303)
  })
}

/**
 * The page to return to after a choice of theme or language; null for the response to a form, which a GET cannot
 * repeat, for /verify, whose address contains a token, and for an error page whose address has a query.
 */
export function returnPath(c: PageContext, status: number): string | null {
  if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return null
  if (c.req.path === '/verify') return null
  const url = new URL(c.req.url)
  // An error page does not repeat the query, which may contain a secret.
  if (status >= 400 && url.search !== '') return null
  // The parameter `done` names a notice of what was done, which the page would show again.
  url.searchParams.delete('done')
  return url.pathname + url.search
}

/** The path if it is one of this service, otherwise null: a form may contain any URL. */
export function ownPath(path: string | null, publicUrl: string): string | null {
  const url = path?.startsWith('/') ? URL.parse(path, publicUrl) : null
  // A path that begins with two slashes is another host.
  return url?.origin === publicUrl && !url.pathname.startsWith('//') ? url.pathname + url.search : null
}
