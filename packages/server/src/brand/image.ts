/** An image that the operator configured, with its file's content. */
export interface BrandImage {
  type: 'image/png' | 'image/svg+xml' | 'image/x-icon'
  bytes: Buffer<ArrayBuffer>
  /** `width` and `height` are in pixels, or in the units of an SVG. Those of an icon file are of its first image. */
  width: number
  height: number
}

const MAX_IMAGE_BYTES = 256 * 1024
/** Maximum width and height, in pixels or in the units of an SVG. */
const MAX_SIDE = 4096

/** Thrown for an image that cannot be used. The message continues a sentence that begins with the name of the file. */
export class UnusableImage extends Error {
  override readonly name = 'UnusableImage'
}

/** Checks the size of a file. Call it before reading the file, so that a huge one is not read. @throws UnusableImage */
export function assertImageSize(bytes: number): void {
  if (bytes <= MAX_IMAGE_BYTES) return
  const kib = Math.ceil(bytes / 1024)
  throw new UnusableImage(`has ${kib} KiB, and at most ${MAX_IMAGE_BYTES / 1024} are allowed`)
}

/**
 * Recognises an image by its bytes.
 *
 * @throws UnusableImage for another kind of file, an incomplete PNG, an unsafe SVG, or sides not from 1 to MAX_SIDE
 */
export function readImage(bytes: Buffer<ArrayBuffer>): BrandImage {
  const image = readPng(bytes) ?? readIcon(bytes) ?? readSvg(bytes)
  if (!image) throw new UnusableImage('is neither a PNG nor an SVG (nor an ICO) by its content')
  const { width, height } = image
  if (!(width >= 1 && height >= 1 && width <= MAX_SIDE && height <= MAX_SIDE))
    throw new UnusableImage(`is ${width} × ${height} large; each side must have 1 to ${MAX_SIDE}`)
  return image
}

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
/** The last chunk of every PNG, with its checksum. */
const PNG_END = Buffer.from('0000000049454e44ae426082', 'hex')

/**
 * Reads a PNG file, whose first chunk has its size (https://www.w3.org/TR/png-3/#5PNG-file-signature); null for another
 * kind of file.
 *
 * @throws UnusableImage if the file is incomplete
 */
function readPng(bytes: Buffer<ArrayBuffer>): BrandImage | null {
  if (!bytes.subarray(0, 8).equals(PNG_SIGNATURE)) return null
  if (bytes.length < 45 || bytes.toString('latin1', 12, 16) !== 'IHDR' || !bytes.includes(PNG_END))
    throw new UnusableImage('is a PNG that is cut off')
  return { type: 'image/png', bytes, width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** Reads an ICO file, in which a width or height of 0 means 256; null for another kind of file. */
function readIcon(bytes: Buffer<ArrayBuffer>): BrandImage | null {
  const isIcon = bytes.length > 22 && bytes.readUInt32BE(0) === 0x00000100 && bytes.readUInt16LE(4) > 0
  return isIcon ? { type: 'image/x-icon', bytes, width: bytes[6] || 256, height: bytes[7] || 256 } : null
}

/**
 * Patterns of SVG content that runs scripts, refers to other files or declares entities, each with its part of the
 * error message, after "is an SVG that". Pages and headers keep such content from having an effect, but a file with it
 * is hardly meant as a logo.
 */
const UNSAFE_CONTENT: readonly [RegExp, string][] = [
  [/<!ENTITY/i, 'declares entities'],
  [
    /<(?:\w+:)?(?:script|foreignObject|iframe|embed|object|audio|video|handler|listener)[\s/>]/i,
    'contains $&…',
  ],
  [/[\s"'/]on[a-z]+\s?=/i, 'contains the event handler $&'],
  [/(?:javascript|vbscript)\s?:/i, 'contains a $& address'],
  [
    /(?:href|src)\s?=\s?["']\s?(?!["'#]|data:image\/(?:png|jpeg|gif|webp)[;,])/i,
    'refers to another file: $&…',
  ],
  [/url\(\s?["']?\s?(?!["'#)]|data:image\/(?:png|jpeg|gif|webp)[;,])/i, 'refers to another file: $&…'],
  [/@import/i, 'refers to another file: $&'],
  [/<\?xml-stylesheet/i, 'refers to a style sheet'],
]

function readSvg(bytes: Buffer<ArrayBuffer>): BrandImage | null {
  const text = decodeUtf8(bytes)
  const root = text && rootTagOf(text)
  if (!text || !root || !/^\s*</.test(text) || !/<\/(?:svg:)?svg>\s*$/i.test(text.slice(-100))) return null
  for (const [pattern, problem] of UNSAFE_CONTENT) {
    const match = pattern.exec(text)?.[0]
    if (match !== undefined)
      throw new UnusableImage(
        `is an SVG that ${problem.replace('$&', match.trim())}; remove that, or export it as PNG`,
      )
  }
  return { type: 'image/svg+xml', bytes, ...sizeOf(root) }
}

/** The start tag of the root element `svg`; null if there is none. */
function rootTagOf(text: string): string | null {
  const start = /<(?:svg:)?svg\s/i.exec(text)?.index ?? -1
  const end = text.indexOf('>', start)
  return start >= 0 && end > start ? text.slice(start, end) : null
}

function decodeUtf8(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

/** The size from the attribute `viewBox`, else from `width` and `height`, of which a missing one counts as 1. */
function sizeOf(root: string): { width: number; height: number } {
  const [, box = ''] = /\sviewBox\s?=\s?["']([^"']{1,100})["']/.exec(root) ?? []
  const [, , width, height] = box
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(Number)
  if (width && height) return { width, height }
  const [, wide = '1'] = /\swidth\s?=\s?["'](\d{1,5})/.exec(root) ?? []
  const [, high = '1'] = /\sheight\s?=\s?["'](\d{1,5})/.exec(root) ?? []
  return { width: Number(wide), height: Number(high) }
}
