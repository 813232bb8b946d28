import { isLoopbackHost } from '../network.ts'
import type { Config } from './config-type.ts'
import { Mistake } from './mistakes.ts'
import type { Parser } from './values.ts'

export const origin: Parser<string> = text => {
  const url = httpUrl(text)
  if (!isOriginOnly(url)) throw new Mistake('must be an origin: no path, query, fragment or user')
  return url.origin
}

function isOriginOnly(url: URL): boolean {
  return url.pathname === '/' && !url.search && !url.hash && !url.username && !url.password
}

/** May have a path and a query; token, email and app_id are added to the query. */
export const verifyUrl: Parser<string> = text => {
  const url = httpUrl(text)
  if (url.hash) throw new Mistake('must have no fragment (#…): the token is added to the query')
  if (url.username || url.password) throw new Mistake('must have no user or password in it')
  for (const name of ['token', 'email', 'app_id'])
    if (url.searchParams.has(name)) throw new Mistake(`must have no ${name} in its query: that one is added`)
  return url.href
}

function httpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !/^https?:$/.test(url.protocol) || !url.hostname)
    throw new Mistake('must be an http or https URL')
  return url
}

export const corsOrigin: Parser<string> = text => {
  if (text === '*') throw new Mistake('must name each origin: * would let every site call the API')
  return origin(text)
}

/**
 * Messages about plain http URLs over which keys, tokens and links would be sent. KEYWAY_INSECURE_HTTP permits http for
 * the public URL.
 */
export function urlMistakes(config: Config, values: { KEYWAY_INSECURE_HTTP: boolean }): string[] {
  const mistakes: string[] = []
  const allowsHttp = values.KEYWAY_INSECURE_HTTP
  if (isPlainHttp(config.publicUrl) && !allowsHttp)
    mistakes.push(
      'KEYWAY_PUBLIC_URL must be https unless its host is loopback, since keys and tokens are sent over it. ' +
        'Example: KEYWAY_PUBLIC_URL=https://keyway.example.com (or KEYWAY_INSECURE_HTTP=true if the network itself is encrypted)',
    )
  const isOwnPage = new URL(config.verifyUrl).origin === config.publicUrl
  if (isPlainHttp(config.verifyUrl) && !isOwnPage)
    mistakes.push(
      'KEYWAY_VERIFY_URL must be https unless its host is loopback, since it receives live tokens. ' +
        'Example: KEYWAY_VERIFY_URL=https://app.example.com/verify',
    )
  return mistakes
}

export function urlWarnings({ publicUrl }: Config): string[] {
  return isPlainHttp(publicUrl)
    ? ['KEYWAY_PUBLIC_URL is http: links, keys and tokens are sent unencrypted. Put a TLS proxy in front.']
    : []
}

function isPlainHttp(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !isLoopbackHost(hostname)
}
