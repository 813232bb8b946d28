import { createHash } from 'node:crypto'
import type { Accent } from './colors.ts'
import type { BrandImage } from './image.ts'

/** The operator's branding of pages and mails. */
export interface Brand {
  accent: Accent
  /** If null, pages show the default logo, a key on a square in the accent colour, and mails the product's initial. */
  logo: BrandImage | null
  /** Shown on pages in the dark theme instead of `logo`. If null, `logo` is shown there too. Mails never show it. */
  logoDark: BrandImage | null
  /** If null, the favicon is `logo` if that is a mark (see `isMark`), otherwise the default logo. */
  favicon: BrandImage | null
  /** If null, the touch icon is the default logo. */
  touchIcon: BrandImage | null
  links: BrandLinks
}

/** URLs of the operator's own pages; null for a page that does not exist. */
export interface BrandLinks {
  terms: string | null
  privacy: string | null
  /** If null, the link to support is a `mailto:` with the support address. */
  support: string | null
}

const FILE_EXTENSIONS = { 'image/png': 'png', 'image/svg+xml': 'svg', 'image/x-icon': 'ico' } as const

/**
 * The path and query from which an image is served. A hash of the image is included, so it can be cached permanently.
 */
export function imagePath(name: string, { type, bytes }: BrandImage): string {
  return `/assets/${name}.${FILE_EXTENSIONS[type]}?v=${versionOf(bytes)}`
}

export function versionOf(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, 10)
}

/** A logo that is wider than this multiple of its height is taken to contain the product's name. */
const MAX_MARK_RATIO = 1.5

/** Whether the logo is a mark without the name, so that the product's name is written next to it. */
export function isMark({ width, height }: BrandImage): boolean {
  return width <= MAX_MARK_RATIO * height
}
