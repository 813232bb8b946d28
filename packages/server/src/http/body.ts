import type { IncomingMessage } from 'node:http'
import { KeywayError } from '../errors.ts'

/** Bytes of a request body. */
export const MAX_BODY_BYTES = 16 * 1024

const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*)?$/i

/**
 * The JSON value of the body, or undefined where there is none. Of members with one name the last wins, as
 * JSON.parse has it, for whoever reads the value afterwards: it is parsed once.
 *
 * @throws KeywayError `unsupported_media_type`, `payload_too_large`, `invalid_json`
 */
export async function readJson(incoming: IncomingMessage): Promise<unknown> {
  const bytes = await readBody(incoming)
  if (bytes.length === 0) return undefined
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    throw new KeywayError(
      'invalid_json',
      'The body must be one JSON value in UTF-8, for example {"email": "ada@example.com"}.',
    )
  }
}

/** A byte order mark is no JSON (RFC 8259 section 8.1), and bytes that are no UTF-8 are refused, never replaced. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Exactly `application/json`, exactly once. Whatever else browsers can send without a preflight (forms,
 * text/plain) must never be read as JSON.
 */
function checkType(incoming: IncomingMessage): void {
  const type = incoming.headers['content-type']
  if (type === undefined || !JSON_TYPE.test(type) || countOf(incoming, 'content-type') !== 1) {
    throw new KeywayError(
      'unsupported_media_type',
      'Send the body as Content-Type: application/json, in UTF-8.',
    )
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

/**
 * The body as it came, for whoever checks a signature over it.
 *
 * @throws KeywayError `unsupported_media_type`, `payload_too_large`, `invalid_json`
 */
export function readBytes(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return readBody(incoming, maxBytes)
}

/** Stops at the first byte too many, whatever length was announced. */
async function readBody(incoming: IncomingMessage, maxBytes = MAX_BODY_BYTES): Promise<Buffer> {
  checkEncoding(incoming)
  const announced = incoming.headers['content-length']
  if (announced === undefined && incoming.headers['transfer-encoding'] === undefined) return EMPTY
  if (announced === '0') return EMPTY
  if (Number(announced ?? 0) > maxBytes) throw tooLarge(maxBytes)
  // A form is refused before its body arrives.
  checkType(incoming)
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length <= maxBytes) {
        chunks.push(chunk)
        return
      }
      incoming.off('data', onData).pause()
      reject(tooLarge(maxBytes))
    }
    const onEnd = () => {
      // Every request closes in the end; the others of these listeners just go with it.
      incoming.off('close', onCut)
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    }
    const onCut = () => reject(new KeywayError('invalid_json', 'The body ended too early.'))
    incoming.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut)
  })
}

const EMPTY = Buffer.alloc(0)

function tooLarge(maxBytes: number): KeywayError {
  return new KeywayError('payload_too_large', `A request body has at most ${maxBytes} bytes.`)
}
