import { isLoopbackHost } from '../network.ts'

/**
 * Whether mail may leave inside TLS only, which STARTTLS begins (RFC 3207): everywhere but to a relay on this machine,
 * or where the setting gives it up (`?tls=off`). A password that is sent before STARTTLS, or to whoever stripped it,
 * is given away.
 *
 * @param url `smtp:` or `smtps:`; the latter is inside TLS from its first byte
 */
export function requiresStartTls(url: URL): boolean {
  return url.protocol === 'smtp:' && !isLoopbackHost(url.hostname) && url.searchParams.get('tls') !== 'off'
}
