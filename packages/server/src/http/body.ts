import type { IncomingMessage } from 'node:http'
import { invalidRequest, KeywayError } from '../errors.ts'
import { MAX_JSON_DEPTH } from './body-fields.ts'

/** Maximum size of a request body, unless its route has another limit. */
export const MAX_BODY_BYTES = 16 * 1024

/**
 * Maximum number of values in a JSON body, unless its route has another limit. A body of 16 KiB can contain 8,000
 * values, whose parsing and validation would block the event loop for a millisecond.
 */
export const MAX_JSON_VALUES = 256
/** The values of a body up to this size are not counted, since parsing it takes at most 50 µs. */
const MAX_UNCOUNTED_BYTES = 1024

export interface BodyFormat {
  /** Matched against the Content-Type header. */
  mediaType: RegExp
  /** The detail of the error for another type. */
  wrongTypeDetail: string
  maxBytes: number
}

/**
 * JSON needs exactly one Content-Type header, with `application/json` and no other charset than UTF-8. Types that
 * browsers send without a preflight (forms, text/plain) must never be parsed as JSON.
 */
export const JSON_BODY: BodyFormat = {
  mediaType: /^application\/json[ \t]*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*)?$/i,
  wrongTypeDetail: 'Send the body as Content-Type: application/json, in UTF-8.',
  maxBytes: MAX_BODY_BYTES,
}

export const FORM_BODY: BodyFormat = {
  mediaType: /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i,
  wrongTypeDetail: 'Send the form as application/x-www-form-urlencoded.',
  maxBytes: MAX_BODY_BYTES,
}

/**
 * Checks the type, the encoding and the announced length before the body arrives.
 *
 * @returns false if the request has no body
 * @throws KeywayError `unsupported_media_type`, `payload_too_large`
 */
export function expectBody(incoming: IncomingMessage, format: BodyFormat): boolean {
  checkEncoding(incoming)
  const announcedLength = incoming.headers['content-length']
  if (announcedLength === undefined && incoming.headers['transfer-encoding'] === undefined) return false
  if (announcedLength === '0') return false
  if (Number(announcedLength ?? 0) > format.maxBytes) throw tooLarge(format.maxBytes)
  checkType(incoming, format)
  return true
}

/**
 * The JSON value of a body; undefined if it is empty. If an object repeats a name, the last value counts, as in
 * JSON.parse.
 *
 * @throws KeywayError `invalid_json`; `invalid_request` if a body of more than MAX_UNCOUNTED_BYTES has too many values
 *   or levels
 */
export function parseJson(body: Buffer, maxValues: number = MAX_JSON_VALUES): unknown {
  if (body.length === 0) return undefined
  if (body.length > MAX_UNCOUNTED_BYTES && !isWithinBounds(body, maxValues)) {
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
 * Whether JSON has at most `maxValues` values and, inside its outermost object, at most MAX_JSON_DEPTH levels. An empty
 * object or array counts as two values. Stops at the first excess. The result for invalid JSON is arbitrary, since
 * parsing refuses that anyway.
 */
function isWithinBounds(body: Buffer, maxValues: number): boolean {
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

/**
 * The index of the closing quote of the string whose content begins at `at`; past the end of the body if there is none.
 */
function endOfString(body: Buffer, at: number): number {
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1
  return at
}

const [QUOTE, COMMA, BACKSLASH, BRACKET, BRACE, CLOSING_BRACKET, CLOSING_BRACE] = Buffer.from('",\\[{]}')

/**
 * Throws for invalid UTF-8 instead of replacing it, and keeps a byte order mark, which JSON.parse then refuses (RFC
 * 8259 section 8.1).
 */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function tooLarge(maxBytes: number): KeywayError {
  return new KeywayError('payload_too_large', `A request body has at most ${maxBytes} bytes.`)
}

function checkType(incoming: IncomingMessage, { mediaType, wrongTypeDetail }: BodyFormat): void {
  const type = incoming.headers['content-type']
  if (type === undefined || !mediaType.test(type) || countOf(incoming, 'content-type') !== 1) {
    throw new KeywayError('unsupported_media_type', wrongTypeDetail)
  }
}

/**
 * Counts the occurrences of a header, of which `headers` has only the first if it is a header such as Content-Type.
 * Faster than `headersDistinct`, which copies all headers.
 *
 * @param name in lower case
 */
function countOf({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const headerName = rawHeaders[at]!
    if (headerName.length === name.length && headerName.toLowerCase() === name) count++
  }
  return count
}

function checkEncoding(incoming: IncomingMessage): void {
  const encoding = incoming.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new KeywayError(
      'unsupported_media_type',
      'Send the body without Content-Encoding: no encoding is accepted.',
    )
  }
}
