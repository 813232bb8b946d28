import type { Hono } from 'hono'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { THEME_CHOICES } from './theme-choice.ts'

/** POST /theme: keeps the choice in a cookie, so that the next page comes in it from its first byte. */
export function themePages(app: Hono<PageVariables>, kit: PageKit): void {
  app.post('/theme', c => {
    const fields = kit.forms.read(c)
    const choice = THEME_CHOICES.find(each => each === fields.get('theme'))
    if (choice) kit.cookies.setTheme(c, choice)
    return c.redirect(ownPath(fields.get('return_to'), kit.publicUrl) ?? '/', 303)
  })
}

/**
 * The page to come back to; null for the answer to a form, which cannot be repeated, and for /verify, whose address contains a
 * token.
 */
export function returnPath(c: PageContext, status: number): string | null {
  if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return null
  if (c.req.path === '/verify') return null
  const url = new URL(c.req.url)
  // A refusal does not repeat what was asked, which may be a secret.
  if (status >= 400 && url.search !== '') return null
  // A notice is not repeated.
  url.searchParams.delete('done')
  return url.pathname + url.search
}

/** A path of this service, whatever the form says. */
export function ownPath(path: string | null, publicUrl: string): string | null {
  const url = path?.startsWith('/') ? URL.parse(path, publicUrl) : null
  // A path that begins with two slashes is another host.
  return url?.origin === publicUrl && !url.pathname.startsWith('//') ? url.pathname + url.search : null
}
