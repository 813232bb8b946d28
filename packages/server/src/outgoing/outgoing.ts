import { lookup } from 'node:dns'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'
import { SECOND } from '../clock.ts'
import { createAddressRule } from './addresses.ts'
import { createLookups, type UrlProvider } from './lookups.ts'

/** Timeout from the look-up of the name to the last byte of the answer. */
const TIMEOUT_MS = 5 * SECOND
const MAX_RESPONSE_BYTES = 64 * 1024
/**
 * Maximum number of interim responses (RFC 9110 section 15.2) before the answer: a server that sends nothing else would
 * keep this node busy.
 */
const MAX_INTERIM_RESPONSES = 10

export interface OutgoingRequest {
  method?: 'GET' | 'POST'
  headers?: Record<string, string>
  body?: string
  /** Who provided the URL; by default the operator. */
  urlProvider?: UrlProvider
  signal?: AbortSignal
}

export interface OutgoingResponse {
  status: number
  headers: IncomingMessage['headers']
  text: string
}

/**
 * Calls a URL that an operator or a client provided. Only https to public addresses is allowed, and both https and http
 * to the networks that the operator lists. The connection goes to the address that was checked, so that DNS rebinding
 * has no effect. Redirects are not followed. A call takes at most 5 seconds, and its response has at most 64 KiB.
 * @throws OutgoingError
 */
export type Outgoing = (url: string, request?: OutgoingRequest) => Promise<OutgoingResponse>

/** A call that was not allowed, failed or timed out; the message is for the operator. */
export class OutgoingError extends Error {
  override readonly name = 'OutgoingError'
}

/** @param privateNetworks CIDRs to which calls are allowed although they are not public */
export function createOutgoing(privateNetworks: readonly string[], resolve = lookup): Outgoing {
  const addressRule = createAddressRule(privateNetworks)
  const lookups = createLookups(resolve)

  return (urlText, { method = 'GET', headers = {}, body, urlProvider = 'operator', signal } = {}) =>
    new Promise((succeed, reject) => {
      const fail = (message: string) => reject(new OutgoingError(message))
      const url = URL.parse(urlText)
      if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
        return fail('the URL is not one of http or https without credentials')
      const isPlaintext = url.protocol === 'http:'
      const mayCall = (address: string) =>
        addressRule.isListed(address) || (!isPlaintext && addressRule.isPublic(address))
      const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
      // A literal address is checked here, since it is not looked up.
      if (isIP(host) && !mayCall(host)) return fail('the address is not one that may be called')
      const send = isPlaintext ? httpRequest : httpsRequest
      let hasEnded = false
      const outgoing = send(url, {
        method,
        signal,
        headers: { ...headers, ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }) },
        // Connections are not reused: the address of each is checked for its call.
        agent: false,
        lookup: (name, options, done) => {
          lookups[urlProvider](
            name,
            options,
            () => hasEnded,
            (error, addresses) => {
              if (error || !addresses) return done(error ?? new Error('no address'), [])
              if (!addresses.every(({ address }) => mayCall(address)))
                return done(new OutgoingError('the name leads to an address that may not be called'), [])
              if ('all' in options && options.all) return done(null, addresses)
              const [{ address, family } = { address: '', family: 4 }] = addresses
              done(null, address, family)
            },
          )
        },
      })
      const timer = setTimeout(
        () => outgoing.destroy(new OutgoingError('no complete answer within 5 seconds')),
        TIMEOUT_MS,
      )
      // If the server switches protocols (101), the request emits neither `response` nor `error`, only `close`.
      let isAnswered = false
      outgoing.on('close', () => {
        hasEnded = true
        clearTimeout(timer)
        if (!isAnswered) fail('no answer')
      })
      let interimCount = 0
      outgoing.on('information', () => {
        if (++interimCount > MAX_INTERIM_RESPONSES)
          outgoing.destroy(new OutgoingError('too many interim responses'))
      })
      outgoing.on('error', error => reject(error instanceof OutgoingError ? error : toError(error)))
      outgoing.on('response', response => {
        isAnswered = true
        readResponse(response).then(
          answer => succeed(answer),
          error => {
            outgoing.destroy()
            reject(error instanceof OutgoingError ? error : toError(error))
          },
        )
      })
      outgoing.end(body)
    })
}

async function readResponse(response: IncomingMessage): Promise<OutgoingResponse> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_RESPONSE_BYTES) throw new OutgoingError('the answer is longer than 64 KiB')
    chunks.push(chunk)
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: Buffer.concat(chunks).toString(),
  }
}

function toError(error: NodeJS.ErrnoException): OutgoingError {
  return new OutgoingError(`no answer: ${error.code ?? error.message}`, { cause: error })
}
