import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/**
 * Compression of responses that are the same for everybody. Nothing else is compressed: the length of a response that
 * contains a secret next to text of the requester would reveal the secret (BREACH, https://breachattack.com). Pages,
 * whose forms contain tokens, and API responses are therefore not compressed.
 */

type Coding = 'br' | 'gzip' | 'identity'

/** A constant document without secrets. */
export interface StaticBody {
  /**
   * The representation for a client's `Accept-Encoding` and `If-None-Match` (RFC 9110, sections 12.5.3 and 13.1.2).
   * `body` is null if the client has this representation already: the answer is then 304. Each encoding is computed
   * once, on its first request, on another thread.
   */
  select(
    request: StaticRequest,
  ): Promise<{ body: Buffer<ArrayBuffer> | null; headers: Record<string, string> }>
}

export interface StaticRequest {
  acceptEncoding: string | undefined
  ifNoneMatch: string | undefined
}

/** Compressing a smaller document saves nothing: it fits into one packet anyway. */
const MIN_COMPRESSED_BYTES = 512

export function createStaticBody(content: Buffer<ArrayBuffer>): StaticBody {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 16)
  const encodings: Partial<Record<Coding, Promise<Buffer<ArrayBuffer>>>> = {
    identity: Promise.resolve(content),
  }
  const isCompressible = content.length >= MIN_COMPRESSED_BYTES

  return {
    async select({ acceptEncoding, ifNoneMatch }) {
      const coding = isCompressible ? preferredCoding(acceptEncoding) : 'identity'
      // One tag for each representation (RFC 9110, section 8.8.3).
      const etag = coding === 'identity' ? `"${hash}"` : `"${hash}-${coding}"`
      const headers: Record<string, string> = {
        ETag: etag,
        ...(isCompressible && { Vary: 'Accept-Encoding' }),
      }
      if (matches(ifNoneMatch, etag)) return { body: null, headers }
      encodings[coding] ??= compress(content, coding)
      if (coding !== 'identity') headers['Content-Encoding'] = coding
      return { body: await encodings[coding], headers }
    },
  }
}

async function compress(content: Buffer, coding: Coding): Promise<Buffer<ArrayBuffer>> {
  if (coding === 'gzip') return (await promisify(gzip)(content, { level: 9 })) as Buffer<ArrayBuffer>
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
  return (await promisify(brotliCompress)(content, { params })) as Buffer<ArrayBuffer>
}

/** Brotli, unless gzip has a higher quality value; identity if the client accepts neither. */
function preferredCoding(acceptEncoding = ''): Coding {
  const qualities = new Map<string, number>()
  for (const part of acceptEncoding.toLowerCase().split(',')) {
    const [name = '', weight = ''] = part.split(';').map(each => each.trim())
    const quality = /^q=([01](?:\.\d{0,3})?)$/.exec(weight)?.[1]
    qualities.set(name, quality === undefined ? 1 : Number(quality))
  }
  const qualityOf = (name: Coding) => qualities.get(name) ?? qualities.get('*') ?? 0
  if (qualityOf('br') > 0 && qualityOf('br') >= qualityOf('gzip')) return 'br'
  return qualityOf('gzip') > 0 ? 'gzip' : 'identity'
}

/** Weak comparison (RFC 9110, section 8.8.3.2). */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const tags = ifNoneMatch.split(',').map(tag => tag.trim().replace(/^W\//, ''))
  return tags.includes(etag) || tags.includes('*')
}
