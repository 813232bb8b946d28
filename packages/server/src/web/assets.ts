import type { Env, Hono } from 'hono'
import { type Brand, imagePath, isMark, versionOf } from '../brand/brand.ts'
import type { BrandImage } from '../brand/image.ts'
import { markPng, markSvg } from '../brand/mark.ts'
import { IMMUTABLE } from '../cache-control.ts'
import { createStaticBody } from '../content-coding.ts'
import { readOwnFile } from '../own-files.ts'

export interface Asset {
  path: string
  /** Includes the content's hash, so that responses can be cached permanently. */
  url: string
  type: string
  body: Buffer<ArrayBuffer>
}

export interface Assets {
  style: Asset
  /** The style sheet for pages of administrators, instead of `style`: it has their additional rules too. */
  adminStyle: Asset
  /** The additional style sheet of the documentation. */
  docsStyle: Asset
  script: Asset
  favicon: Asset
  touchIcon: Asset
  logo: LogoAsset | null
  logoDark: LogoAsset | null
}

export type LogoAsset = Asset & Pick<BrandImage, 'width' | 'height'>

/** Concatenated in this order; later rules override earlier ones. */
const STYLE_FILES = [
  'base',
  'frame',
  'forms',
  'buttons',
  'lists',
  'tables',
  'steps',
  'ask',
  'admin',
  'media',
  'modes',
].map(name => `style/${name}.css`)

const ADMIN_STYLE = 'style/admin.css'

export function loadAssets(brand: Brand): Assets {
  const { light } = brand.accent
  const favicon = brand.favicon ?? (brand.logo && isMark(brand.logo) ? brand.logo : null)
  return {
    style: toAsset(
      'style.css',
      'text/css; charset=utf-8',
      styleOf(
        brand,
        STYLE_FILES.filter(name => name !== ADMIN_STYLE),
      ),
    ),
    docsStyle: toAsset(
      'docs.css',
      'text/css; charset=utf-8',
      ['docs', 'code', 'reference'].map(name => readStyle(`style/${name}.css`)).join('\n'),
    ),
    script: toAsset('script.js', 'text/javascript; charset=utf-8', readCompact('script.js')),
    favicon: favicon ? toImage('favicon', favicon) : toAsset('mark.svg', 'image/svg+xml', markSvg(light)),
    touchIcon: brand.touchIcon
      ? toImage('touch-icon', brand.touchIcon)
      : toAsset('touch-icon.png', 'image/png', markPng(light)),
    logo: brand.logo && toImage('logo', brand.logo),
    logoDark: brand.logoDark && toImage('logo-dark', brand.logoDark),
    adminStyle: toAsset('admin.css', 'text/css; charset=utf-8', styleOf(brand, STYLE_FILES)),
  }
}

function styleOf(brand: Brand, files: readonly string[]): string {
  return [accentStyle(brand), ...files.map(readStyle)].join('\n')
}

/** The accent colours as custom properties; the style sheets define all other ones. */
function accentStyle({ accent: { light, dark } }: Brand): string {
  const names = { accent: 'accent', hover: 'accent-hover', ink: 'accent-ink', soft: 'accent-soft' } as const
  const rules = Object.entries(names).map(
    ([key, name]) =>
      `--${name}: light-dark(${light[key as keyof typeof names]}, ${dark[key as keyof typeof names]});`,
  )
  return `:root {${rules.join('')}}`
}

/** The CSP of images: an SVG that is opened directly is a document, and must neither run scripts nor load anything. */
const IMAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

export function serveAssets<E extends Env>(app: Hono<E>, assets: Assets): void {
  for (const { path, type, body } of Object.values<Asset | null>({ ...assets }).filter(
    each => each !== null,
  )) {
    const content = createStaticBody(body)
    const headers: Record<string, string> = {
      'Content-Type': type,
      'Cache-Control': IMMUTABLE,
      // Other origins may load images, since web mail clients show the logo.
      ...(type.startsWith('image/') && {
        'Content-Security-Policy': IMAGE_POLICY,
        'Cross-Origin-Resource-Policy': 'cross-origin',
      }),
    }
    app.get(path, async c => {
      const conditions = {
        acceptEncoding: c.req.header('accept-encoding'),
        ifNoneMatch: c.req.header('if-none-match'),
      }
      const { body, headers: selected } = await content.select(conditions)
      return body
        ? c.body(body, 200, { ...headers, ...selected })
        : c.body(null, 304, { 'Cache-Control': IMMUTABLE, ...selected })
    })
  }
}

/** Reads a file without indentation and comment lines, so that fewer bytes are sent. */
function readCompact(name: string): string {
  const lines = readOwnFile(`packages/server/src/web/${name}`).toString().split('\n')
  return lines
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('//') && !/^\/\*.*\*\/$/.test(line))
    .join('\n')
}

/** Like `readCompact`, and without the spaces and line ends that the formatter inserts. */
function readStyle(name: string): string {
  return readCompact(name)
    .replace(/^([\w-]+): /gm, '$1:')
    .replaceAll(' {\n', '{')
    .replaceAll(';\n}', '}')
    .replace(/([;,}])\n/g, '$1')
    .replaceAll(', ', ',')
}

function toImage(name: string, image: BrandImage): LogoAsset {
  const url = imagePath(name, image)
  return { path: url.split('?')[0]!, url, ...image, body: image.bytes }
}

function toAsset(name: string, type: string, content: string | Buffer<ArrayBuffer>): Asset {
  const body = Buffer.from(content as string)
  const path = `/assets/${name}`
  return { path, url: `${path}?v=${versionOf(body)}`, type, body }
}
