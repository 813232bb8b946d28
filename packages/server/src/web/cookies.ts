import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { type Clock, DAY, HOUR, type Instant, SECOND } from '../clock.ts'
import { randomToken, type Secrets } from '../secrets.ts'
import { type EmailAddress, parseEmailAddress } from '../users/email-address.ts'

/** One link that this browser asked for. */
export interface AskedLink {
  loginId: string
  email: EmailAddress
  at: Instant
}

/** As many links as one browser can wait for at a time. */
const MAX_ASKED_LINKS = 5
/** Longer than a link lives: whoever comes back late is told that it expired, not that nothing was ever asked for. */
const ASKED_KEPT_FOR = HOUR
/** As many addresses as one browser is recognised for. */
const MAX_RETURNING = 5
/** As long as browsers keep a cookie at all. */
const RETURNING_KEPT_FOR = 400 * DAY

export interface Cookies {
  session(c: Context): string | undefined
  setSession(c: Context, value: string, maxAgeSeconds: number): void
  clearSession(c: Context): void
  /** The random value that form tokens are bound to; made where the browser has none. */
  formSecret(c: Context): string
  /** Links that this browser asked for in the last hour, newest first. Forged ones are none. */
  askedLinks(c: Context): AskedLink[]
  rememberAsked(c: Context, link: AskedLink): void
  /** Whether someone signed in to this address in this browser before. Nobody else can claim it. */
  isReturning(c: Context, email: EmailAddress): boolean
  rememberSignIn(c: Context, email: EmailAddress): void
}

/**
 * `__Host-` ties a cookie to this very origin, but browsers take it over https only. Lax and not Strict: the
 * click in a mail is a cross-site navigation, and a Strict cookie would not arrive with it.
 */
export function createCookies({
  secrets,
  clock,
  publicUrl,
}: {
  secrets: Secrets
  clock: Clock
  publicUrl: string
}): Cookies {
  const secure = publicUrl.startsWith('https:')
  const prefix = secure ? '__Host-' : ''
  const names = {
    session: `${prefix}keyway_session`,
    form: `${prefix}keyway_form`,
    asked: `${prefix}keyway_asked`,
    returning: `${prefix}keyway_returning`,
  }
  /** Made in this very answer: several forms of one page share it. */
  const fresh = new WeakMap<Context, string>()
  const attributes = { path: '/', httpOnly: true, sameSite: 'Lax', secure } as const

  return {
    session: c => getCookie(c, names.session),
    setSession: (c, value, maxAge) => setCookie(c, names.session, value, { ...attributes, maxAge }),
    clearSession: c => void deleteCookie(c, names.session, { path: '/', secure }),
    formSecret(c) {
      const present = fresh.get(c) ?? getCookie(c, names.form)
      if (present && /^[\w-]{43}$/.test(present)) return present
      const made = randomToken(32)
      fresh.set(c, made)
      setCookie(c, names.form, made, attributes)
      return made
    },
    askedLinks(c) {
      return readAsked(getCookie(c, names.asked) ?? '').filter(link => clock.now() < link.at + ASKED_KEPT_FOR)
    },
    rememberAsked(c, link) {
      const links = [link, ...this.askedLinks(c)].slice(0, MAX_ASKED_LINKS)
      const body = Buffer.from(JSON.stringify(links)).toString('base64url')
      const value = `${body}~${secrets.mac('link-marker', body)}`
      setCookie(c, names.asked, value, { ...attributes, maxAge: ASKED_KEPT_FOR / SECOND })
    },
    isReturning: (c, email) => markers(c).some(marker => secrets.verifyMac('send-marker', email, marker)),
    rememberSignIn(c, email) {
      const others = markers(c).filter(marker => !secrets.verifyMac('send-marker', email, marker))
      // MACs alone: whoever reads the cookie learns no address.
      const value = [secrets.mac('send-marker', email), ...others].slice(0, MAX_RETURNING).join('~')
      setCookie(c, names.returning, value, { ...attributes, maxAge: RETURNING_KEPT_FOR / SECOND })
    },
  }

  function markers(c: Context): string[] {
    return (getCookie(c, names.returning) ?? '').split('~').filter(Boolean).slice(0, MAX_RETURNING)
  }

  function readAsked(value: string): AskedLink[] {
    const [body = '', mac = ''] = value.split('~')
    if (!secrets.verifyMac('link-marker', body, mac)) return []
    const links = JSON.parse(Buffer.from(body, 'base64url').toString()) as AskedLink[]
    return links.filter(link => parseEmailAddress(link.email) === link.email)
  }
}
