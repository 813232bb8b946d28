import type { IncomingMessage } from 'node:http'
import { invalidRequest, KeywayError } from '../errors.ts'
import { MAX_JSON_DEPTH } from './body-fields.ts'

/** Bytes of a request body, where a route says nothing else. */
export const MAX_BODY_BYTES = 16 * 1024

/**
 * Values of a JSON body, where a route says nothing else. A body of 16 KiB can hold 8,000, which cost a millisecond of
 * the event loop before they are refused or ignored.
 */
export const MAX_JSON_VALUES = 256
/** A body of fewer bytes is parsed uncounted: it cannot cost more than 50 µs. */
const COUNTED_BYTES = 1024

/** The kinds of request bodies. */
export interface BodyFormat {
  /** Matched against the one Content-Type header. */
  mediaType: RegExp
  /** How a body of another type is refused. */
  wrongType: string
  maxBytes: number
}

/**
 * Exactly `application/json`, exactly once. Whatever else browsers can send without a preflight (forms,
 * text/plain) must never be read as JSON.
 */
export const JSON_BODY: BodyFormat = {
  mediaType: /^application\/json[ \t]*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*)?$/i,
  wrongType: 'Send the body as Content-Type: application/json, in UTF-8.',
  maxBytes: MAX_BODY_BYTES,
}

/** Media types of HTML forms. */
export const FORM_BODY: BodyFormat = {
  mediaType: /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i,
  wrongType: 'Send the form as application/x-www-form-urlencoded.',
  maxBytes: MAX_BODY_BYTES,
}

/**
 * Refuses what can be refused before the body arrives: its type, its encoding, its announced length.
 *
 * @returns false where there is no body at all
 * @throws KeywayError `unsupported_media_type`, `payload_too_large`
 */
export function expectBody(incoming: IncomingMessage, format: BodyFormat): boolean {
  checkEncoding(incoming)
  const announced = incoming.headers['content-length']
  if (announced === undefined && incoming.headers['transfer-encoding'] === undefined) return false
  if (announced === '0') return false
  if (Number(announced ?? 0) > format.maxBytes) throw tooLarge(format.maxBytes)
  checkType(incoming, format)
  return true
}

/**
 * The JSON value of a body, or undefined where it is empty. Of members with one name the last wins, as
 * JSON.parse has it. The body is parsed once, so all readers see the same value.
 *
 * @throws KeywayError `invalid_json`; `invalid_request` for more values or levels than any body of ours has
 */
export function parseJson(body: Buffer, maxValues: number = MAX_JSON_VALUES): unknown {
  if (body.length === 0) return undefined
  if (body.length > COUNTED_BYTES && !isWithin(body, maxValues)) {
    const levels = `at most ${MAX_JSON_DEPTH} levels`
    const message = Number.isFinite(maxValues) ? `${levels} and ${maxValues} values` : levels
    throw invalidRequest([{ field: 'body', message: `must have ${message}` }])
  }
  try {
    return JSON.parse(utf8.decode(body))
  } catch {
    throw new KeywayError(
      'invalid_json',
      'The body must be one JSON value in UTF-8, for example {"email": "ada@example.com"}.',
    )
  }
}

/**
 * Whether JSON has at most so many values, and no more levels than a value that we pass on, in the object around it.
 * Linear, and ends at the first byte that is too much. What it says of bytes that are no JSON does not matter.
 */
function isWithin(body: Buffer, maxValues: number): boolean {
  let values = 1
  let depth = 0
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === QUOTE) at = endOfString(body, at + 1)
    else if (byte === COMMA) values++
    else if (byte === BRACKET || byte === BRACE) {
      values++
      depth++
    } else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) depth--
    if (values > maxValues || depth > MAX_JSON_DEPTH + 1) return false
  }
  return true
}

/** Where the string ends that begins before `at`. */
function endOfString(body: Buffer, at: number): number {
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1
  return at
}

const [QUOTE, COMMA, BACKSLASH, BRACKET, BRACE, CLOSING_BRACKET, CLOSING_BRACE] = Buffer.from('",\\[{]}')

/** A byte order mark is no JSON (RFC 8259 section 8.1), and bytes that are no UTF-8 are refused, never replaced. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function tooLarge(maxBytes: number): KeywayError {
  return new KeywayError('payload_too_large', `A request body has at most ${maxBytes} bytes.`)
}

function checkType(incoming: IncomingMessage, { mediaType, wrongType }: BodyFormat): void {
  const type = incoming.headers['content-type']
  if (type === undefined || !mediaType.test(type) || countOf(incoming, 'content-type') !== 1) {
    throw new KeywayError('unsupported_media_type', wrongType)
  }
}

/** Of a header that Node keeps the first of. Its own `headersDistinct` builds every header anew to tell it. */
function countOf({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const given = rawHeaders[at]!
    if (given.length === name.length && given.toLowerCase() === name) count++
  }
  return count
}

function checkEncoding(incoming: IncomingMessage): void {
  const encoding = incoming.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new KeywayError(
      'unsupported_media_type',
      'Send the body as it is: no Content-Encoding is accepted.',
    )
  }
}
