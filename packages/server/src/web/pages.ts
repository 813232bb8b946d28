import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Json } from '@keyway/sdk/protocol'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import type { Accounts } from '../billing/accounts.ts'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { MagicLinks } from '../magic-links/magic-links.ts'
import type { Caller } from '../network.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Secrets } from '../secrets.ts'
import type { SecurityEvent } from '../security-events/security-event.ts'
import type { SessionLifetimes } from '../sessions/session.ts'
import type { Sessions, SignedIn } from '../sessions/sessions.ts'
import type { EmailAddress } from '../users/user.ts'
import type { Users } from '../users/users.ts'
import { accountPages } from './account.ts'
import { agentPages } from './agents.ts'
import { createCookies } from './cookies.ts'
import { createForms } from './forms.ts'
import { inboxPages } from './inbox.ts'
import { keyPages } from './keys.ts'
import { type Html, markFile, type PageOptions, page, type Shell } from './layout.ts'
import { sessionPages } from './sessions.ts'
import { signInPages } from './sign-in.ts'
import { verifyPages } from './verify.ts'
import { words } from './words.ts'

/** A live connection as the pages show it. */
export interface LiveAgent {
  connectionId: string
  keyId: string
  keyName: string | null
  address: string
  client: string | null
  connectedAt: number
}

export interface PageAgents {
  connections(userId: string): Promise<LiveAgent[]>
  /** How many connections it was written to; null when nothing of that name is the user's. */
  sendTo(userId: string, to: string, data: Json): Promise<number | null>
  disconnect(userId: string, connectionId: string): Promise<boolean>
}

/** One mail of the local inbox. */
export interface InboxItem {
  id: string
  to: string
  subject: string
  template: string
  link: string | null
  code: string | null
  text: string
  html: string
  createdAt: number
}

export interface PageInbox {
  /** Newest first, all of them or one recipient's. */
  list(recipient: EmailAddress | null): Promise<InboxItem[]>
}

export interface PageServices {
  accounts: Accounts
  agents: PageAgents
  apiKeys: ApiKeys
  clock: Clock
  /** Null where mail leaves the machine. */
  inbox: PageInbox | null
  lifetimes: SessionLifetimes
  log: Log
  magicLinks: MagicLinks
  maxActiveKeys: number
  productName: string
  publicUrl: string
  secrets: Secrets
  securityEvents: { list(userId: string, page: PageRequest): Promise<Slice<SecurityEvent>> }
  sessions: Sessions
  supportEmail: string
  users: Users
}

/** What the HTTP edge knows of a request; the edges never import each other, so it is handed over. */
export interface RequestFacts {
  callerOf(request: Request, env: unknown): Caller
  /** Whether listening address, peer and Host are loopback and no proxy stands between. */
  isLocal(request: Request, env: unknown): boolean
}

export interface PageVariables {
  Variables: { signedIn: SignedIn | null; notice: string | null }
}

export type PageContext = import('hono').Context<PageVariables>

export interface PageKit extends PageServices, RequestFacts {
  cookies: ReturnType<typeof createCookies>
  forms: ReturnType<typeof createForms>
  shell: Shell
  /** Answers with one whole page. */
  render(
    c: PageContext,
    options: Partial<PageOptions> & { title: string },
    body: Html,
    status?: number,
  ): Response | Promise<Response>
  /** Who is signed in by this page's cookie; goes to /sign-in otherwise. @throws Redirect */
  requireSession(c: PageContext): SignedIn
}

/** Leaves a handler for another page. */
export class Redirect extends Error {
  readonly location: string
  constructor(location: string) {
    super(location)
    this.location = location
  }
}

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/** The web pages: a client of the same verbs as the API, with a session cookie of their own. */
export function createPages(services: PageServices & RequestFacts): Hono<PageVariables> {
  const assets = loadAssets()
  const kit = createKit(services, assets)
  const app = new Hono<PageVariables>()
  app.onError((error, c) => renderError(kit, c, error))
  app.use(async (c, next) => {
    for (const [name, value] of PAGE_HEADERS) c.header(name, value)
    await next()
  })
  for (const asset of assets) {
    app.get(asset.path, c =>
      c.body(asset.body, 200, {
        'Content-Type': asset.type,
        'Cache-Control': 'public, max-age=31536000, immutable',
      }),
    )
  }
  app.use(async (c, next) => {
    const cookie = kit.cookies.session(c)
    c.set('signedIn', cookie ? await kit.sessions.authenticateCookie(cookie) : null)
    await next()
  })
  signInPages(app, kit)
  verifyPages(app, kit)
  keyPages(app, kit)
  agentPages(app, kit)
  sessionPages(app, kit)
  accountPages(app, kit)
  if (services.inbox) inboxPages(app, kit, services.inbox)
  return app
}

const PAGE_HEADERS: [string, string][] = [
  ['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'same-origin'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Cache-Control', 'no-store'],
  ['X-Robots-Tag', 'noindex'],
]

function createKit(services: PageServices & RequestFacts, assets: Asset[]): PageKit {
  const cookies = createCookies(services)
  const forms = createForms({ ...services, cookies })
  const shell: Shell = {
    productName: services.productName,
    hasInbox: services.inbox !== null,
    styleUrl: assets[0]!.url,
    scriptUrl: assets[1]!.url,
  }
  return {
    ...services,
    cookies,
    forms,
    shell,
    render(c, options, body, status = 200) {
      const user = c.get('signedIn')?.user ?? null
      const notice = options.notice ?? c.get('notice') ?? null
      const whole = page(shell, { user, formToken: forms.token(c), ...options, notice }, body)
      return c.html(whole, status as 200)
    },
    requireSession(c) {
      const signedIn = c.get('signedIn')
      if (!signedIn) throw new Redirect(cookies.session(c) ? '/sign-in?ended=1' : '/sign-in')
      return signedIn
    },
  }
}

function renderError(kit: PageKit, c: PageContext, error: Error): Response | Promise<Response> {
  if (error instanceof Redirect) return c.redirect(error.location, 303)
  const { title, lead, status } = describe(error)
  if (status === 500) kit.log.error({ err: error.name, detail: error.message }, 'a page failed')
  const message: Html = html`<h1>${title}</h1><p class="lead">${lead}</p><p><a class="button" href="/">${words.errors.home}</a></p>`
  return kit.render(c, { title }, message, status)
}

function describe(error: Error): { title: string; lead: string; status: number } {
  const { errors } = words
  if (!(error instanceof KeywayError))
    return { title: errors.internal, lead: errors.unavailableLead, status: 500 }
  if (error.code === 'unavailable')
    return { title: errors.unavailable, lead: errors.unavailableLead, status: 503 }
  if (error.code === 'not_found') return { title: errors.notFound, lead: errors.notFoundLead, status: 404 }
  if (error.code === 'forbidden') return { title: errors.form, lead: errors.formLead, status: 403 }
  if (error.code === 'payload_too_large') return { title: errors.form, lead: error.message, status: 413 }
  if (error.code === 'unsupported_media_type') return { title: errors.form, lead: error.message, status: 415 }
  return { title: errors.form, lead: error.message, status: 400 }
}

interface Asset {
  path: string
  url: string
  type: string
  body: string
}

function loadAssets(): Asset[] {
  const file = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
  return [
    toAsset('/assets/style.css', 'text/css; charset=utf-8', file('./style.css')),
    toAsset('/assets/script.js', 'text/javascript; charset=utf-8', file('./script.js')),
    toAsset('/assets/mark.svg', 'image/svg+xml', markFile),
  ]
}

function toAsset(path: string, type: string, body: string): Asset {
  const version = createHash('sha256').update(body).digest('base64url').slice(0, 10)
  return { path, url: `${path}?v=${version}`, type, body }
}
