import type { Context } from 'hono'
import { NO_STORE } from '../cache-control.ts'
import { isLoopbackHost } from '../network.ts'

export function pageHeaders(publicUrl: string): [string, string][] {
  const { protocol, hostname } = new URL(publicUrl)
  return protocol === 'https:' && !isLoopbackHost(hostname)
    ? [...PAGE_HEADERS, STRICT_TRANSPORT]
    : PAGE_HEADERS
}

/**
 * Allows the forms of a page to redirect to an app. Browsers apply `form-action` to all redirects that follow, also to
 * further ones by the app, so all of https is allowed. An app that opened the page in a window keeps its reference to
 * that window.
 */
export function allowRedirectTo(c: Context, redirectUri: string): void {
  const { protocol, origin } = new URL(redirectUri)
  const target = protocol === 'https:' ? '' : ` ${protocol === 'http:' ? origin : protocol}`
  c.header('Content-Security-Policy', contentSecurityPolicy(`'self' https:${target}`))
  allowOpener(c)
}

/** Keeps `window.opener`. Redirects need this too: browsers sever it at the first response that does not allow it. */
export function allowOpener(c: Context): void {
  c.header('Cross-Origin-Opener-Policy', 'unsafe-none')
}

function contentSecurityPolicy(formAction: string): string {
  return [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "frame-src 'self'",
    `form-action ${formAction}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
}

const PAGE_HEADERS: [string, string][] = [
  ['Content-Security-Policy', contentSecurityPolicy("'self'")],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'same-origin'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Cache-Control', NO_STORE],
  ['X-Robots-Tag', 'noindex'],
]

/** HSTS for two years. Not on loopback, where it would disable plain http for all other programs of the machine. */
const STRICT_TRANSPORT: [string, string] = ['Strict-Transport-Security', 'max-age=63072000']
