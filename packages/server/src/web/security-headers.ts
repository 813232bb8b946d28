import { NO_STORE } from '../cache-control.ts'
import { isLoopbackHost } from '../network.ts'

/** Security headers of every page. */
export function pageHeaders(publicUrl: string): [string, string][] {
  const { protocol, hostname } = new URL(publicUrl)
  return protocol === 'https:' && !isLoopbackHost(hostname)
    ? [...PAGE_HEADERS, STRICT_TRANSPORT]
    : PAGE_HEADERS
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

const PAGE_HEADERS: [string, string][] = [
  ['Content-Security-Policy', CONTENT_SECURITY_POLICY],
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
