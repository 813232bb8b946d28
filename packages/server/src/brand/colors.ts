/** `#rrggbb`. */
export type Hex = `#${string}`

/** The accent colour of one theme, and the colours that are derived from it. */
export interface AccentColors {
  /** The colour of links, and the background of buttons. */
  accent: Hex
  hover: Hex
  /** The colour of text on `accent`. */
  ink: Hex
  /** The background of selected elements. */
  soft: Hex
}

export type Theme = 'light' | 'dark'
export type Accent = Record<Theme, AccentColors>

/** The minimum contrast of text (WCAG 2.2, success criterion 1.4.3). */
const MIN_CONTRAST = 4.5
/** The minimum contrast of an accent colour that is derived for the dark theme. */
const DERIVED_CONTRAST = 7
/** The maximum chroma of a derived colour: more saturated ones look glaring on a dark background. */
const MAX_DERIVED_CHROMA = 0.11

interface ThemeColors {
  /** The background of cards and mails. */
  card: Hex
  /** The backgrounds of pages and mails on which text has the accent colour, besides `AccentColors.soft`. */
  backgrounds: readonly Hex[]
  /** The colour of text on the accent colour. */
  ink: Hex
  /** The share of the accent colour in `AccentColors.soft`; the rest is `card`. */
  softShare: number
  /** What is added to the lightness (OKLCH) of the accent colour to get `AccentColors.hover`. */
  hoverLightness: number
}

const THEME_COLORS: Record<Theme, ThemeColors> = {
  light: {
    card: '#ffffff',
    backgrounds: ['#f6f7f9', '#ffffff', '#f3f4f8'],
    ink: '#ffffff',
    softShare: 0.09,
    hoverLightness: -0.06,
  },
  dark: {
    card: '#171b22',
    backgrounds: ['#0f1217', '#171b22', '#10131a', '#212733'],
    ink: '#10131a',
    softShare: 0.13,
    hoverLightness: 0.05,
  },
}

export const DEFAULT_ACCENT: Record<Theme, Hex> = { light: '#3a4fcb', dark: '#a6b6ff' }

/**
 * The accent colours of both themes. Without a colour for the dark theme, one is derived from `light`: it has the same
 * hue and is bright enough for dark backgrounds.
 */
export function accentOf(light: Hex, dark: Hex = brighten(light)): Accent {
  return { light: colorsOf(light, 'light'), dark: colorsOf(dark, 'dark') }
}

function colorsOf(accent: Hex, theme: Theme): AccentColors {
  const { card, ink, softShare, hoverLightness } = THEME_COLORS[theme]
  const { l, c, h } = toOklch(accent)
  return { accent, hover: toHex({ l: l + hoverLightness, c, h }), ink, soft: mix(accent, card, softShare) }
}

/**
 * The lowest contrast in this theme of text in the accent colour on any background, and of text on the accent colour.
 */
export function leastContrast(accent: Hex, theme: Theme): number {
  const { backgrounds, ink } = THEME_COLORS[theme]
  const { soft } = colorsOf(accent, theme)
  return Math.min(...[...backgrounds, soft, ink].map(other => contrast(accent, other)))
}

export function isLegible(accent: Hex, theme: Theme, minContrast = MIN_CONTRAST): boolean {
  return leastContrast(accent, theme) >= minContrast
}

/** Number of steps in lightness between a colour and black or white. */
const LIGHTNESS_STEPS = 256

/**
 * The colour of the same hue that is legible in this theme, as near as possible in lightness (OKLCH): darker for the
 * light theme, brighter for the dark one. Black or white if none is legible.
 */
export function nearestLegible(color: Hex, theme: Theme, minContrast = MIN_CONTRAST): Hex {
  const { l, c, h } = toOklch(color)
  const endLightness = theme === 'light' ? 0 : 1
  for (let step = 0; step <= LIGHTNESS_STEPS; step++) {
    const candidate = toHex({ l: l + ((endLightness - l) * step) / LIGHTNESS_STEPS, c, h })
    if (isLegible(candidate, theme, minContrast)) return candidate
  }
  return theme === 'light' ? '#000000' : '#ffffff'
}

function brighten(light: Hex): Hex {
  const { l, c, h } = toOklch(light)
  return nearestLegible(toHex({ l, c: Math.min(c, MAX_DERIVED_CHROMA), h }), 'dark', DERIVED_CONTRAST)
}

/** The contrast of two colours, from 1 to 21 (WCAG 2.2, "contrast ratio"). */
export function contrast(one: Hex, other: Hex): number {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (lighter + 0.05) / (darker + 0.05)
}

type Triple = [number, number, number]

function luminance(color: Hex): number {
  const [red, green, blue] = channels(color).map(toLinear) as Triple
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function mix(color: Hex, background: Hex, share: number): Hex {
  const backgroundChannels = channels(background)
  const mixed = channels(color).map((value, at) => share * value + (1 - share) * backgroundChannels[at]!)
  return fromChannels(mixed as Triple)
}

/** Red, green and blue, each from 0 to 1. */
function channels(color: Hex): Triple {
  return [1, 3, 5].map(at => Number.parseInt(color.slice(at, at + 2), 16) / 255) as Triple
}

function fromChannels(values: Triple): Hex {
  const digits = values.map(value =>
    Math.round(Math.min(1, Math.max(0, value)) * 255)
      .toString(16)
      .padStart(2, '0'),
  )
  return `#${digits.join('')}`
}

/** Decodes one sRGB channel to linear light (IEC 61966-2-1). */
function toLinear(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
}

function fromLinear(value: number): number {
  return value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055
}

/** Lightness from 0 to 1, chroma, and hue in radians (CSS Color 4, section 9). */
interface Oklch {
  l: number
  c: number
  h: number
}

/** Converts sRGB to OKLCH (https://www.w3.org/TR/css-color-4/#color-conversion-code). */
function toOklch(color: Hex): Oklch {
  const [red, green, blue] = channels(color).map(toLinear) as Triple
  const long = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
  const medium = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
  const short = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
  const l = 0.2104542553 * long + 0.793617785 * medium - 0.0040720468 * short
  const a = 1.9779984951 * long - 2.428592205 * medium + 0.4505937099 * short
  const b = 0.0259040371 * long + 0.7827717662 * medium - 0.808675766 * short
  return { l, c: Math.hypot(a, b), h: Math.atan2(b, a) }
}

/** Converts OKLCH to sRGB, with less chroma if sRGB has no such colour. */
function toHex({ l, c, h }: Oklch): Hex {
  let [inGamut, outOfGamut] = [0, c]
  if (isInSrgb(linearOf({ l, c, h }))) inGamut = c
  else
    for (let halved = 0; halved < 16; halved++) {
      const middle = (inGamut + outOfGamut) / 2
      if (isInSrgb(linearOf({ l, c: middle, h }))) inGamut = middle
      else outOfGamut = middle
    }
  return fromChannels(linearOf({ l, c: inGamut, h }).map(fromLinear) as Triple)
}

const ROUNDING_TOLERANCE = 1e-4

function isInSrgb(linear: Triple): boolean {
  return linear.every(value => value >= -ROUNDING_TOLERANCE && value <= 1 + ROUNDING_TOLERANCE)
}

/** Converts OKLCH to linear red, green and blue. */
function linearOf({ l, c, h }: Oklch): Triple {
  const [a, b] = [c * Math.cos(h), c * Math.sin(h)]
  const long = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const medium = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const short = (l - 0.0894841775 * a - 1.291485548 * b) ** 3
  return [
    4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short,
  ]
}
