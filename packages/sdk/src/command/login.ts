import type { ApiKeyObject } from '../api-objects.ts'
import { requestJson } from '../http.ts'
import { createCredentials } from './credentials.ts'
import { awaitDecision, requestDeviceCodes } from './device-grant.ts'
import { keyName, machineName } from './node-process.ts'
import { openBrowser } from './open-browser.ts'
import { serviceUrl } from './service-url.ts'

export interface LoginOptions {
  url: string | undefined
  /** The scopes of the key; empty means `agent:connect`. */
  scopes: readonly string[]
  name: string | undefined
  opensBrowser: boolean
}

/** Creates a key for this machine by the device grant (RFC 8628) and stores it, so that nobody has to copy one. */
export async function login(options: LoginOptions): Promise<void> {
  const credentials = createCredentials()
  const url = serviceUrl(options.url, credentials.latest)
  const previousKey = credentials.find(url)
  const name = keyName(options.name ?? '') || machineName()

  const codes = await requestDeviceCodes(url, { scopes: options.scopes, deviceName: name })
  console.log(`To connect this machine, open this page and compare its code with ${codes.user_code}:

  ${codes.verification_uri_complete}

In another browser open ${codes.verification_uri} and type the code. Waiting…`)
  if (options.opensBrowser) openBrowser(codes.verification_uri_complete)

  const token = await awaitDecision(url, codes)
  const createdKey = await requestJson<ApiKeyObject & { key: string }>(fetch, `${url}/v1/api-keys`, {
    method: 'POST',
    body: { name },
    headers: { authorization: `Bearer ${token.access_token}` },
  })
  const { key, id, scopes, expires_at } = createdKey
  credentials.store(url, { key, id, name: createdKey.name, scopes, expires_at })
  console.log(`Connected. The key "${createdKey.name}" (${createdKey.key_prefix}…) may ${scopes.join(', ')}${expiryText(expires_at)}.
It is stored in ${credentials.path}, and \`run\` uses it.`)
  if (previousKey)
    console.log(`The key that was stored before still works. Revoke it at ${url}/keys/${previousKey.id}`)
}

function expiryText(expiresAt: string | null): string {
  return expiresAt === null ? '' : ` until ${expiresAt.slice(0, 10)}`
}
