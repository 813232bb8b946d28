import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { type Clock, DAY, HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'
import { isLanguage, type Language } from '../languages/languages.ts'
import { randomToken, type Secrets } from '../secrets.ts'
import { type EmailAddress, parseEmailAddress } from '../users/email-address.ts'
import { THEME_CHOICES, type ThemeChoice } from './theme-choice.ts'

/** A sign-in link that this browser requested. */
export interface RequestedLink {
  loginId: string
  email: EmailAddress
  at: Instant
}

const MAX_REQUESTED_LINKS = 5
/** Longer than a link is valid, so that a page can say that the link expired rather than that it is unknown. */
const REQUESTED_LINKS_KEPT_FOR = HOUR
/** How long a person may take to sign in and be redirected. */
const DESTINATION_KEPT_FOR = 30 * MINUTE
const MAX_RECOGNISED_ADDRESSES = 5
/** The longest lifetime that browsers permit for cookies. */
const RECOGNITION_KEPT_FOR = 400 * DAY
const PREFERENCES_KEPT_FOR = 400 * DAY

export interface Cookies {
  session(c: Context): string | undefined
  setSession(c: Context, value: string, maxAgeSeconds: number): void
  clearSession(c: Context): void
  /** The random value to which form tokens (CSRF tokens) are bound; created if the browser has none. */
  formSecret(c: Context): string
  /** Links that this browser requested in the last hour, newest first. Forged entries are ignored. */
  requestedLinks(c: Context): RequestedLink[]
  rememberRequested(c: Context, link: RequestedLink): void
  /** Whether this address is among the last few that signed in from this browser, as a MAC in a cookie proves. */
  isReturning(c: Context, email: EmailAddress): boolean
  rememberSignIn(c: Context, email: EmailAddress): void
  /** The path that the browser is redirected to after a sign-in, or null; also deletes the cookie with it. */
  takeDestination(c: Context): string | null
  /** Like `takeDestination`, without deleting the cookie. */
  destination(c: Context): string | null
  rememberDestination(c: Context, path: string): void
  /** The theme that was chosen in this browser; `system` if none was. */
  theme(c: Context): ThemeChoice
  setTheme(c: Context, choice: ThemeChoice): void
  /** The language that was chosen in this browser, or that `rememberLanguage` stored; null if there is none. */
  language(c: Context): Language | null
  setLanguage(c: Context, choice: Language): void
  /** Remembers the language that an app asked for, for as long as a sign-in to it may take. */
  rememberLanguage(c: Context, requested: Language): void
}

/**
 * `__Host-` binds a cookie to this origin, but browsers accept it over https only. SameSite is Lax, not Strict: a
 * click in a mail is a cross-site navigation, with which Strict cookies are not sent.
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
    destination: `${prefix}keyway_destination`,
    theme: `${prefix}keyway_theme`,
    language: `${prefix}keyway_language`,
  }
  /**
   * Form secrets that were created for requests without one. All forms of a response must share one secret, and the new
   * cookie cannot be read from the request.
   */
  const newFormSecrets = new WeakMap<Context, string>()
  const attributes = { path: '/', httpOnly: true, sameSite: 'Lax', secure } as const

  return {
    session: c => getCookie(c, names.session),
    setSession: (c, value, maxAge) => setCookie(c, names.session, value, { ...attributes, maxAge }),
    clearSession: c => void deleteCookie(c, names.session, { path: '/', secure }),
    formSecret(c) {
      const existingSecret = newFormSecrets.get(c) ?? getCookie(c, names.form)
      if (existingSecret && /^[\w-]{43}$/.test(existingSecret)) return existingSecret
      const secret = randomToken(32)
      newFormSecrets.set(c, secret)
      setCookie(c, names.form, secret, attributes)
      return secret
    },
    requestedLinks(c) {
      return readRequestedLinks(getCookie(c, names.asked) ?? '').filter(
        link => clock.now() < link.at + REQUESTED_LINKS_KEPT_FOR,
      )
    },
    rememberRequested(c, link) {
      const links = [link, ...this.requestedLinks(c)].slice(0, MAX_REQUESTED_LINKS)
      const encodedLinks = Buffer.from(JSON.stringify(links)).toString('base64url')
      const value = `${encodedLinks}~${secrets.mac('link-marker', encodedLinks)}`
      setCookie(c, names.asked, value, { ...attributes, maxAge: REQUESTED_LINKS_KEPT_FOR / SECOND })
    },
    isReturning: (c, email) =>
      returningMarkers(c).some(marker => secrets.verifyMac('send-marker', email, marker)),
    rememberSignIn(c, email) {
      const otherMarkers = returningMarkers(c).filter(
        marker => !secrets.verifyMac('send-marker', email, marker),
      )
      // The cookie has only MACs, so that it does not reveal addresses.
      const markers = [secrets.mac('send-marker', email), ...otherMarkers].slice(0, MAX_RECOGNISED_ADDRESSES)
      setCookie(c, names.returning, markers.join('~'), {
        ...attributes,
        maxAge: RECOGNITION_KEPT_FOR / SECOND,
      })
    },
    language(c) {
      const value = getCookie(c, names.language) ?? ''
      return isLanguage(value) ? value : null
    },
    setLanguage: (c, choice) =>
      setCookie(c, names.language, choice, { ...attributes, maxAge: PREFERENCES_KEPT_FOR / SECOND }),
    rememberLanguage: (c, requested) =>
      setCookie(c, names.language, requested, { ...attributes, maxAge: DESTINATION_KEPT_FOR / SECOND }),
    theme(c) {
      const value = getCookie(c, names.theme)
      return THEME_CHOICES.find(choice => choice === value) ?? 'system'
    },
    setTheme(c, choice) {
      if (choice === 'system') deleteCookie(c, names.theme, { path: '/', secure })
      else setCookie(c, names.theme, choice, { ...attributes, maxAge: PREFERENCES_KEPT_FOR / SECOND })
    },
    destination: readDestination,
    takeDestination(c) {
      const path = readDestination(c)
      if (path !== null) deleteCookie(c, names.destination, { path: '/', secure })
      return path
    },
    rememberDestination(c, path) {
      // The path has a MAC, so that no other site of the domain can choose where a sign-in leads.
      const encodedPath = Buffer.from(path).toString('base64url')
      const value = `${encodedPath}~${secrets.mac('destination', encodedPath)}`
      setCookie(c, names.destination, value, { ...attributes, maxAge: DESTINATION_KEPT_FOR / SECOND })
    },
  }

  function readDestination(c: Context): string | null {
    const [encoded = '', mac = ''] = (getCookie(c, names.destination) ?? '').split('~')
    if (!secrets.verifyMac('destination', encoded, mac)) return null
    return Buffer.from(encoded, 'base64url').toString()
  }

  function returningMarkers(c: Context): string[] {
    return (getCookie(c, names.returning) ?? '').split('~').filter(Boolean).slice(0, MAX_RECOGNISED_ADDRESSES)
  }

  function readRequestedLinks(value: string): RequestedLink[] {
    const [encodedLinks = '', mac = ''] = value.split('~')
    if (!secrets.verifyMac('link-marker', encodedLinks, mac)) return []
    const links = JSON.parse(Buffer.from(encodedLinks, 'base64url').toString()) as RequestedLink[]
    return links.filter(link => parseEmailAddress(link.email) === link.email)
  }
}
