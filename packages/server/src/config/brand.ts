import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Brand } from '../brand/brand.ts'
import {
  accentOf,
  DEFAULT_ACCENT,
  type Hex,
  isLegible,
  leastContrast,
  nearestLegible,
} from '../brand/colors.ts'
import { assertImageSize, type BrandImage, readImage, UnusableImage } from '../brand/image.ts'
import { isLoopbackHost } from '../network.ts'
import { Mistake } from './mistakes.ts'
import type { Parser } from './values.ts'

/** The settings as parsed; images are paths. */
interface BrandValues {
  KEYWAY_LOGO?: string | undefined
  KEYWAY_LOGO_DARK?: string | undefined
  KEYWAY_FAVICON?: string | undefined
  KEYWAY_TOUCH_ICON?: string | undefined
  KEYWAY_ACCENT_COLOR?: AccentSetting | undefined
  KEYWAY_TERMS_URL?: string | undefined
  KEYWAY_PRIVACY_URL?: string | undefined
  KEYWAY_SUPPORT_URL?: string | undefined
}

type AccentSetting = [light: Hex, dark?: Hex]

/** The settings of images. Each names a file, which is read after all settings were parsed. */
const IMAGES = {
  KEYWAY_LOGO: {
    types: ['image/png', 'image/svg+xml'],
    kinds: 'a PNG or an SVG',
    minPixels: 16,
    square: false,
  },
  KEYWAY_LOGO_DARK: {
    types: ['image/png', 'image/svg+xml'],
    kinds: 'a PNG or an SVG',
    minPixels: 16,
    square: false,
  },
  KEYWAY_FAVICON: {
    types: ['image/png', 'image/svg+xml', 'image/x-icon'],
    kinds: 'an SVG, a PNG or an ICO',
    minPixels: 16,
    square: true,
  },
  KEYWAY_TOUCH_ICON: { types: ['image/png'], kinds: 'a PNG', minPixels: 120, square: true },
} as const

type ImageSetting = keyof typeof IMAGES

/** The operator's branding, and what is wrong with its files. */
export function brandOf(values: BrandValues): { brand: Brand; mistakes: string[] } {
  const mistakes: string[] = []
  const image = (name: ImageSetting): BrandImage | null => {
    const file = values[name]
    if (file === undefined) return null
    try {
      return readImageFile(file, name)
    } catch (error) {
      if (!(error instanceof UnusableImage)) throw error
      mistakes.push(
        `${name} ${JSON.stringify(file)} ${error.message}. Example: ${name}=/etc/keyway/${EXAMPLE_FILES[name]}`,
      )
      return null
    }
  }
  const brand: Brand = {
    accent: accentOf(
      ...(values.KEYWAY_ACCENT_COLOR ?? ([DEFAULT_ACCENT.light, DEFAULT_ACCENT.dark] as const)),
    ),
    logo: image('KEYWAY_LOGO'),
    logoDark: image('KEYWAY_LOGO_DARK'),
    favicon: image('KEYWAY_FAVICON'),
    touchIcon: image('KEYWAY_TOUCH_ICON'),
    links: {
      terms: values.KEYWAY_TERMS_URL ?? null,
      privacy: values.KEYWAY_PRIVACY_URL ?? null,
      support: values.KEYWAY_SUPPORT_URL ?? null,
    },
  }
  if (values.KEYWAY_LOGO_DARK !== undefined && values.KEYWAY_LOGO === undefined)
    mistakes.push(
      'KEYWAY_LOGO_DARK is set without KEYWAY_LOGO, which it replaces on dark backgrounds. Example: KEYWAY_LOGO=/etc/keyway/logo.svg',
    )
  return { brand, mistakes }
}

const EXAMPLE_FILES: Record<ImageSetting, string> = {
  KEYWAY_LOGO: 'logo.svg',
  KEYWAY_LOGO_DARK: 'logo-dark.svg',
  KEYWAY_FAVICON: 'favicon.svg',
  KEYWAY_TOUCH_ICON: 'touch-icon.png',
}

/** The path of an image; `brandOf` reads it. */
export const imageFile: Parser<string> = text => {
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(text))
    throw new Mistake(
      'must be the path of a file: pages load images of this service only, and its content is checked',
    )
  return resolve(text)
}

function readImageFile(file: string, name: ImageSetting): BrandImage {
  const { types, kinds, minPixels, square } = IMAGES[name]
  const image = readImage(bytesOf(file))
  const { type, width, height } = image
  if (!types.some(each => each === type))
    throw new UnusableImage(`is another kind of image: it must be ${kinds}`)
  if (square && width !== height) throw new UnusableImage(`must be as wide as high, not ${width} × ${height}`)
  // An SVG scales, so its units say nothing about its size.
  if (type === 'image/png' && Math.min(width, height) < minPixels)
    throw new UnusableImage(`must have at least ${minPixels} pixels on each side, not ${width} × ${height}`)
  return image
}

function bytesOf(file: string): Buffer<ArrayBuffer> {
  try {
    assertImageSize(statSync(file).size)
    return readFileSync(file)
  } catch (error) {
    if (error instanceof UnusableImage) throw error
    throw new UnusableImage(`cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`)
  }
}

/** Parses the colour of the light theme, and that of the dark theme, which is derived from the first if absent. */
export const accentColor: Parser<AccentSetting> = text => {
  const [light, dark, ...others] = text.split(',').map(part => toHex(part.trim()))
  if (!light || dark === null || others.length > 0)
    throw new Mistake(
      `must be one colour as #rrggbb, or two with a comma, for the light and the dark theme, not ${JSON.stringify(text)}`,
    )
  assertLegible(light, 'light')
  if (!dark) return [light]
  assertLegible(dark, 'dark')
  return [light, dark]
}

function toHex(text: string): Hex | null {
  if (/^#[0-9a-f]{6}$/i.test(text)) return text.toLowerCase() as Hex
  if (!/^#[0-9a-f]{3}$/i.test(text)) return null
  return `#${[...text.slice(1).toLowerCase()].map(digit => digit + digit).join('')}`
}

function assertLegible(color: Hex, theme: 'light' | 'dark'): void {
  if (isLegible(color, theme)) return
  throw new Mistake(
    `has too little contrast in the ${theme} theme: links and buttons in ${color} would have ${leastContrast(color, theme).toFixed(1)}:1, and 4.5:1 is needed (WCAG 2.2). The nearest usable colour is ${nearestLegible(color, theme)}`,
  )
}

/** The URL of a page of the operator that our pages link to. */
export const pageUrl: Parser<string> = text => {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname))) {
    if (!url.username && !url.password) return url.href
  }
  throw new Mistake(`must be an https URL without user and password, not ${JSON.stringify(text)}`)
}
