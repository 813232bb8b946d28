import { isIP } from 'node:net'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { type SendWindow, WINDOW_LENGTHS, type WindowName } from '../magic-links/send-limits.ts'
import { isLoopbackHost, parseCidr } from '../network.ts'
import { Mistake } from './mistakes.ts'

/** From a text to a value. @throws Mistake with the rest of the sentence "NAME …", never with a secret's text */
export type Parser<T> = (text: string) => T

const MIN_SECRET_BYTES = 32
const MAX_LIMIT = 1_000_000

export function oneOf<const T extends string>(...allowed: T[]): Parser<T> {
  return text => {
    const found = allowed.find(value => value === text)
    if (found === undefined)
      throw new Mistake(`must be one of ${allowed.join(', ')}, not ${JSON.stringify(text)}`)
    return found
  }
}

const trueOrFalse = oneOf('true', 'false')
export const flag: Parser<boolean> = text => trueOrFalse(text) === 'true'

export function integer(least: number, most: number): Parser<number> {
  return text => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new Mistake(`must be a whole number from ${least} to ${most}, not ${JSON.stringify(text)}`)
    return value
  }
}

/** Port 0 is whichever is free. */
export const port = integer(0, 65535)

export const host: Parser<string> = text => {
  const bare = text.replace(/^\[(.*)\]$/, '$1')
  if (isIP(bare) || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(bare)) return bare
  throw new Mistake(`must be an address or a host name to listen on, not ${JSON.stringify(text)}`)
}

export const directory: Parser<string> = text => resolve(text)

export const origin: Parser<string> = text => {
  const url = httpUrl(text)
  if (!isOriginOnly(url)) throw new Mistake('must be an origin: no path, query, fragment or user')
  return url.origin
}

function isOriginOnly(url: URL): boolean {
  return url.pathname === '/' && !url.search && !url.hash && !url.username && !url.password
}

/** The path and query are the operator's own; ours are added to it. */
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
    throw new Mistake('must be an http or https address')
  return url
}

export function list<T>(item: Parser<T>): Parser<T[]> {
  return text =>
    text
      .split(',')
      .map(part => part.trim())
      .filter(Boolean)
      .map(item)
}

export const cidr: Parser<string> = text => {
  const parsed = parseCidr(text)
  if (parsed) return parsed
  throw new Mistake(
    `must list addresses or CIDRs whose host bits are zero, and ${JSON.stringify(text)} is none`,
  )
}

export const corsOrigin: Parser<string> = text => {
  if (text === '*') throw new Mistake('must name each origin: * would let every site call the API')
  return origin(text)
}

export const database: Parser<Config['database']> = text => {
  const file = /^sqlite:(?:\/\/)?(.+)$/s.exec(text)?.[1]
  if (file === ':memory:') throw new Mistake('cannot be :memory:, which forgets every account at the end')
  if (file) return { engine: 'sqlite', file: resolve(file) }
  return { engine: 'postgres', url: postgresUrl(text, 'sqlite:PATH or postgres://…') }
}

export const events: Parser<Config['events']> = text => {
  if (/^rediss?:\/\//.test(text) && URL.canParse(text)) return { kind: 'redis', url: text }
  return { kind: 'postgres', url: postgresUrl(text, 'redis://… or postgres://…') }
}

function postgresUrl(text: string, wanted: string): string {
  if (!/^postgres(ql)?:\/\//.test(text)) throw new Mistake(`must be ${wanted}`)
  if (!URL.canParse(text))
    throw new Mistake('is no address: percent-encode special characters of the user and the password')
  return text
}

export const secrets: Parser<Buffer[]> = text => list(secret)(text)

const secret: Parser<Buffer> = text => {
  const standard = text.replaceAll('-', '+').replaceAll('_', '/')
  const bytes = Buffer.from(standard, 'base64')
  const isBase64 = bytes.toString('base64').replace(/=+$/, '') === standard.replace(/=+$/, '')
  if (!isBase64 || bytes.length < MIN_SECRET_BYTES)
    throw new Mistake(
      `must be base64 of at least ${MIN_SECRET_BYTES} random bytes (several: comma separated, the first seals)`,
    )
  return bytes
}

const MAIL_FORMS = 'must be inbox:, smtp://…, smtps://…, resend://KEY or postmark://TOKEN'

export const mail: Parser<Config['mail']> = text => {
  if (text === 'inbox:') return { kind: 'inbox' }
  const [, scheme, rest = ''] = /^([a-z]+):\/\/(.+)$/s.exec(text) ?? []
  if (scheme === 'resend') return { kind: 'resend', key: providerKey(rest) }
  if (scheme === 'postmark') return { kind: 'postmark', token: providerKey(rest) }
  if (scheme === 'smtp' || scheme === 'smtps') return smtp(text)
  throw new Mistake(MAIL_FORMS)
}

function providerKey(text: string): string {
  const key = decoded(text.replace(/\/$/, ''))
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Mistake("must have the provider's key after the ://")
  return key
}

function smtp(text: string): Config['mail'] {
  if (!URL.canParse(text))
    throw new Mistake('is no address: percent-encode special characters of the user and the password')
  const url = new URL(text)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const secure = url.protocol === 'smtps:'
  if (!host) throw new Mistake('must name the host of the mail server')
  const unknown = [...url.searchParams].some(([name, value]) => name !== 'tls' || value !== 'off' || secure)
  if (unknown || url.hash || !/^\/?$/.test(url.pathname))
    throw new Mistake('may end in ?tls=off (smtp:// only) and nothing else after the port')
  return {
    kind: 'smtp',
    host,
    port: url.port ? Number(url.port) : secure ? 465 : 587,
    secure,
    // A password that is sent before STARTTLS, or to whoever stripped it, is given away.
    requireTls: !secure && !isLoopbackHost(url.hostname) && url.searchParams.get('tls') !== 'off',
    user: url.username ? decoded(url.username) : null,
    password: url.password ? decoded(url.password) : null,
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Mistake('has a % that is not followed by two hex digits: write a lone % as %25')
  }
}

const MIN_HOOK_SECRET_LENGTH = 16

export const hookSecret: Parser<string> = text => {
  const isKey =
    !text.startsWith('whsec_') || Buffer.from(text.slice(6), 'base64').length >= MIN_HOOK_SECRET_LENGTH
  if (isKey && text.length >= MIN_HOOK_SECRET_LENGTH && /^[\x21-\x7e]+$/.test(text)) return text
  throw new Mistake(
    `must be the signing secret that the provider shows, or at least ${MIN_HOOK_SECRET_LENGTH} random characters without spaces`,
  )
}

const ADDRESS = /^[^\s<>@,;:"]+@[^\s<>@,;:"]+$/

export const address: Parser<string> = text => {
  if (ADDRESS.test(text)) return text
  throw new Mistake(`must be one e-mail address, not ${JSON.stringify(text)}`)
}

export const sender: Parser<Config['mailFrom']> = text => {
  const [, name = '', inner = text] = /^(.*?)\s*<([^<>]+)>$/s.exec(text) ?? []
  const plain = name.replace(/^"(.*)"$/, '$1').trim()
  if (!ADDRESS.test(inner) || /[\u0000-\u001f\u007f<>]/.test(plain))
    throw new Mistake(`must be an address with or without a name, not ${JSON.stringify(text)}`)
  return { name: plain || 'Keyway', address: inner }
}

export const limits: Parser<SendWindow[]> = text => {
  const windows = list(sendWindow)(text)
  if (windows.length === 0) throw new Mistake('must name at least one window')
  if (new Set(windows.map(each => each.window)).size < windows.length)
    throw new Mistake('must name each of minute, hour, day at most once')
  windows.sort((left, right) => WINDOW_LENGTHS[left.window] - WINDOW_LENGTHS[right.window])
  windows.slice(1).forEach((longer, index) => {
    const shorter = windows[index]!
    if (shorter.limit > longer.limit)
      throw new Mistake(
        `allows ${shorter.limit} per ${shorter.window}, more than its ${longer.limit} per ${longer.window}: that window could never be used`,
      )
  })
  return windows
}

export const limitsOrOff: Parser<SendWindow[] | null> = text => (text === 'off' ? null : limits(text))

const sendWindow: Parser<SendWindow> = text => {
  const [, limitText = '', window = ''] = /^([1-9]\d{0,6})\/(minute|hour|day)$/.exec(text) ?? []
  const limit = Number(limitText)
  if (!window || limit > MAX_LIMIT)
    throw new Mistake(
      `must be numbers of at least 1 per minute, hour or day, and ${JSON.stringify(text)} is none`,
    )
  return { window: window as WindowName, limit }
}
