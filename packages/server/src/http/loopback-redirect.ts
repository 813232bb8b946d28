import type { IncomingMessage } from 'node:http'
import { wantsPage } from './accept.ts'
import { isLoopbackName } from './caller.ts'

/**
 * On this machine the service has several names, and cookies and WebSocket origins belong to one of them: a page
 * asked for under another goes to the public URL. Nothing is built from Host; it is only compared.
 */
export function loopbackRedirect(incoming: IncomingMessage, publicUrl: string): string | null {
  const { method, headers, url = '/' } = incoming
  const own = new URL(publicUrl)
  if (method !== 'GET' || !isLoopbackName(own.hostname) || !wantsPage(incoming)) return null
  const host = URL.parse(`http://${headers.host ?? ''}`)
  if (!host || !isLoopbackName(host.hostname) || host.hostname === own.hostname) return null
  return url.startsWith('/') ? publicUrl + url : null
}
