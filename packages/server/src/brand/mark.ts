import { crc32, deflateSync } from 'node:zlib'
import type { AccentColors } from './colors.ts'

/** The service's default logo, a key, as SVG and as PNG, drawn on a square of 32 by 32 units. */

const RING = { x: 12.5, y: 16, radius: 5 }
const STROKE_WIDTH = 2.6
/** The shaft and the bit of the key, as lines from x1, y1 to x2, y2. */
const LINES = [
  [17.5, 16, 26, 16],
  [22.5, 16, 22.5, 20.5],
] as const
const DRAWING_SIDE = 32

/** The drawn key as SVG elements, for a `viewBox` of 32 by 32 units. */
export const MARK_DRAWING = `<circle cx="${RING.x}" cy="${RING.y}" r="${RING.radius}"/><path d="${LINES.map(([x1, y1, x2, y2]) => `M${x1} ${y1}L${x2} ${y2}`).join('')}"/>`

/** The logo as an SVG file, for the favicon. */
export function markSvg({ accent, ink }: AccentColors): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${DRAWING_SIDE} ${DRAWING_SIDE}"><rect x="2" y="2" width="28" height="28" rx="8" fill="${accent}"/><g fill="none" stroke="${ink}" stroke-width="${STROKE_WIDTH}" stroke-linecap="round">${MARK_DRAWING}</g></svg>`
}

/** Width and height of the touch icon in pixels. Systems scale it down and round its corners. */
export const TOUCH_ICON_SIDE = 180
/** Number of colours in the palette: a pixel has 4 bits. */
const SHADE_COUNT = 16

/** The logo as a PNG file, for the touch icon: the antialiased key in `ink` on a square filled with `accent`. */
export function markPng({ accent, ink }: AccentColors): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(TOUCH_ICON_SIDE, 0)
  header.writeUInt32BE(TOUCH_ICON_SIDE, 4)
  header.set([4, 3], 8) // bits a pixel; colours by palette
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('PLTE', palette(accent, ink)),
    chunk('IDAT', deflateSync(pixels())),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Encodes a chunk of a PNG file (https://www.w3.org/TR/png-3/#5Chunk-layout). */
function chunk(name: string, content: Buffer): Buffer {
  const nameAndContent = Buffer.concat([Buffer.from(name, 'latin1'), content])
  const encoded = Buffer.alloc(nameAndContent.length + 8)
  encoded.writeUInt32BE(content.length, 0)
  nameAndContent.copy(encoded, 4)
  encoded.writeUInt32BE(crc32(nameAndContent), nameAndContent.length + 4)
  return encoded
}

function palette(from: string, to: string): Buffer {
  const [first, last] = [from, to].map(color => Buffer.from(color.slice(1), 'hex')) as [Buffer, Buffer]
  return Buffer.from(
    Array.from({ length: 3 * SHADE_COUNT }, (_, at) => {
      const share = Math.floor(at / 3) / (SHADE_COUNT - 1)
      return Math.round((1 - share) * first[at % 3]! + share * last[at % 3]!)
    }),
  )
}

/** The rows of pixels; each begins with a byte 0, which means that the row is not filtered. */
function pixels(): Buffer {
  const lineBytes = 1 + TOUCH_ICON_SIDE / 2
  const lines = Buffer.alloc(TOUCH_ICON_SIDE * lineBytes)
  for (let y = 0; y < TOUCH_ICON_SIDE; y++) {
    for (let x = 0; x < TOUCH_ICON_SIDE; x++) {
      lines[y * lineBytes + 1 + (x >> 1)]! |= shadeAt(x, y) << (x % 2 === 0 ? 4 : 0)
    }
  }
  return lines
}

/** How much of a pixel the lines of the drawn key cover, from 0 to 15. */
function shadeAt(x: number, y: number): number {
  const unit = DRAWING_SIDE / TOUCH_ICON_SIDE
  const [atX, atY] = [(x + 0.5) * unit, (y + 0.5) * unit]
  const distanceToRing = Math.abs(Math.hypot(atX - RING.x, atY - RING.y) - RING.radius)
  const distanceToStroke = Math.min(distanceToRing, ...LINES.map(line => distance(atX, atY, line)))
  const coverage = (STROKE_WIDTH / 2 - distanceToStroke) / unit + 0.5
  return Math.round(Math.min(1, Math.max(0, coverage)) * (SHADE_COUNT - 1))
}

/** The distance of a point from a line that is horizontal or vertical. */
function distance(x: number, y: number, [x1, y1, x2, y2]: (typeof LINES)[number]): number {
  return Math.hypot(x - Math.min(Math.max(x, x1), x2), y - Math.min(Math.max(y, y1), y2))
}
