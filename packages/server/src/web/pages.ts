import { Hono, type Next } from 'hono'
import { texts } from '../languages/current.ts'
import { accountPages } from './account.ts'
import { adminPages } from './admin-pages.ts'
import { agentPages } from './agents.ts'
import { type Assets, loadAssets, serveAssets } from './assets.ts'
import { createCookies } from './cookies.ts'
import { devicePages } from './device.ts'
import { docsPages } from './docs-pages.ts'
import { createForms } from './forms.ts'
import { inboxPages } from './inbox.ts'
import { keyPages } from './keys.ts'
import {
  NoPage,
  type PageContext,
  type PageKit,
  type PageServices,
  type PageVariables,
  Redirect,
  type RequestFacts,
} from './kit.ts'
import { answerInChosenLanguage, answerInLanguage, languagePages } from './languages.ts'
import { page } from './layout.ts'
import { oauthPages } from './oauth-pages.ts'
import { createPendingRequests } from './pending-requests.ts'
import { methodNotAllowed, notFound, renderProblem, wantsHtml, wantsJson } from './problem.ts'
import { pageHeaders } from './security-headers.ts'
import { sessionPages } from './sessions.ts'
import { signInPages } from './sign-in.ts'
import { createStreams } from './streams.ts'
import { returnPath, themePages } from './theme.ts'
import { verifyPages } from './verify.ts'

export interface Pages {
  /**
   * @returns a `NoPage` if no page answers this path and method and the client does not accept HTML; the HTTP layer
   *   answers with a problem document
   * @throws whatever a page threw, if the client asked for JSON; the HTTP layer answers it with a problem document
   */
  fetch(request: Request, env: object): Promise<Response | NoPage>
  /** Methods and paths of all pages and their files. Middleware is listed too, with the method `ALL`. */
  readonly routes: readonly { method: string; path: string }[]
}

/** The web pages. They use the same operations as the API, with a session cookie. */
export function createPages(services: PageServices & RequestFacts): Pages {
  const assets = loadAssets(services.brand)
  const kit = createKit(services, assets)
  const headers = pageHeaders(services.publicUrl)
  const app = new Hono<PageVariables>()
  app.onError((error, c) => {
    // For clients that want JSON, the HTTP layer responds with a problem document.
    if (error instanceof NoPage || (wantsJson(c) && !(error instanceof Redirect))) throw error
    return renderProblem(kit, c, error)
  })
  app.use(async (c, next) => {
    for (const [name, value] of headers) c.header(name, value)
    await next()
  })
  serveAssets(app, assets)
  answerInLanguage(app, kit)
  app.use(async (c, next) => {
    const cookie = kit.cookies.session(c)
    c.set('signedIn', cookie ? await kit.sessions.authenticateCookie(cookie) : null)
    await next()
  })
  answerInChosenLanguage(app, kit)
  app.get('/', c => c.redirect(c.get('signedIn') ? '/keys' : '/sign-in', 303))
  signInPages(app, kit)
  verifyPages(app, kit)
  oauthPages(app, kit)
  keyPages(app, kit)
  agentPages(app, kit)
  sessionPages(app, kit)
  devicePages(app, kit)
  accountPages(app, kit)
  docsPages(app, kit)
  themePages(app, kit)
  languagePages(app, kit)
  adminPages(app, kit)
  if (services.inbox) inboxPages(app, kit, services.inbox)
  // This is registered last, so that a page that answers 404 to some clients does so for every method.
  app.use((c, next) => answerOtherMethods(app, kit, c, next))
  app.notFound(c => {
    if (wantsHtml(c)) return renderProblem(kit, c, notFound())
    throw new NoPage(null)
  })
  return {
    routes: app.routes,
    async fetch(request, env) {
      try {
        return await app.fetch(request, env)
      } catch (error) {
        if (error instanceof NoPage) return error
        throw error
      }
    },
  }
}

/**
 * Answers a method that the page does not support with 405 and `Allow` (RFC 9110 section 15.5.6), and OPTIONS with 204
 * and `Allow`. Continues with `next` if there is no page at this path.
 *
 * @throws NoPage instead of the 405 if the client does not accept HTML
 */
async function answerOtherMethods(app: Hono<PageVariables>, kit: PageKit, c: PageContext, next: Next) {
  const methods = ['GET', 'POST'].filter(method =>
    app.router.match(method, c.req.path)[0].some(([[, route]]) => route.method === method),
  )
  if (methods.length === 0) return next()
  const allowedMethods = methods.flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  const allowHeader = [...allowedMethods, 'OPTIONS'].join(', ')
  c.header('Allow', allowHeader)
  if (c.req.method === 'OPTIONS') return c.body(null, 204)
  if (wantsHtml(c)) return renderProblem(kit, c, methodNotAllowed())
  throw new NoPage(allowHeader)
}

function createKit(services: PageServices & RequestFacts, assets: Assets): PageKit {
  const cookies = createCookies(services)
  const forms = createForms({ ...services, cookies })
  const shell = {
    productName: services.productName,
    assets,
    brand: services.brand,
    supportEmail: services.supportEmail,
  }
  const showsInbox = (c: PageContext) => services.inbox !== null && services.isLocal(c.req.raw, c.env)
  return {
    ...services,
    showsInbox,
    cookies,
    forms,
    pendingRequests: createPendingRequests(services),
    shell,
    streams: createStreams(services),
    render(c, options, body, status = 200) {
      const user = c.get('signedIn')?.user ?? null
      const noticeName = c.req.query('done') ?? ''
      const notices: Readonly<Record<string, string>> = texts.notices
      const notice = Object.hasOwn(notices, noticeName) && !options.problem ? notices[noticeName] : null
      const defaults = {
        user,
        formToken: forms.token(c),
        showsInbox: showsInbox(c),
        notice,
        theme: cookies.theme(c),
        returnTo: returnPath(c, status) ?? options.formAt ?? null,
      }
      return c.html(page(shell, { ...defaults, ...options }, body), status as 200)
    },
    requireSession(c) {
      const signedIn = c.get('signedIn')
      if (signedIn) return signedIn
      const path = requestedPagePath(c)
      if (path) cookies.rememberDestination(c, path)
      throw new Redirect(cookies.session(c) ? '/sign-in?done=ended' : '/sign-in')
    },
  }
}

/** Maximum length of a path that a sign-in returns to, since a cookie stores it. */
const MAX_DESTINATION_LENGTH = 500

/**
 * The requested path and query, if a sign-in may return there; null for forms, for streams and other requests that do
 * not accept HTML, for downloads, for the default, /keys, for a path that begins with two slashes, which as a redirect
 * would name another host, and for a path that is too long.
 */
function requestedPagePath(c: PageContext): string | null {
  if (c.req.method !== 'GET' || !wantsHtml(c)) return null
  const { pathname, search } = new URL(c.req.url)
  const path = pathname + search
  const isPage = pathname !== '/keys' && !/^\/\/|\/export|\.csv$/.test(pathname)
  return isPage && path.length <= MAX_DESTINATION_LENGTH ? path : null
}
