import type { IncomingMessage } from 'node:http'
import { wantsPage } from './accept.ts'
import { isLoopbackName } from './caller.ts'

/**
 * On loopback the service has several names (localhost, 127.0.0.1), but cookies and WebSocket origins belong to one.
 * Returns the public URL of a page that was requested under another name, or null. Host is only compared, never put
 * into a response.
 */
export function loopbackRedirect(incoming: IncomingMessage, publicUrl: string): string | null {
  const { method, headers, url = '/' } = incoming
  const ownUrl = new URL(publicUrl)
  if (method !== 'GET' || !isLoopbackName(ownUrl.hostname) || !wantsPage(incoming)) return null
  const requestedUrl = URL.parse(`http://${headers.host ?? ''}`)
  if (!requestedUrl || !isLoopbackName(requestedUrl.hostname) || requestedUrl.hostname === ownUrl.hostname)
    return null
  return url.startsWith('/') ? publicUrl + url : null
}
