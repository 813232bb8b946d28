import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Hono } from 'hono'
import { publicFor } from '../cache-control.ts'
import type { PageVariables } from './kit.ts'
import { markFile } from './layout.ts'

interface Asset {
  path: string
  /** Includes the content's hash, so that responses can be cached permanently. */
  url: string
  type: string
  body: string
}

export interface Assets {
  style: Asset
  script: Asset
  mark: Asset
}

const YEAR_SECONDS = 31_536_000

/** Concatenated in this order; later rules override earlier ones. */
const STYLE_FILES = ['base', 'frame', 'forms', 'buttons', 'lists', 'tables', 'steps', 'admin', 'media'].map(
  name => `style/${name}.css`,
)

/** The three files that pages load, read once. */
export function loadAssets(): Assets {
  return {
    style: toAsset('/assets/style.css', 'text/css; charset=utf-8', STYLE_FILES.map(read).join('\n')),
    script: toAsset('/assets/script.js', 'text/javascript; charset=utf-8', read('script.js')),
    mark: toAsset('/assets/mark.svg', 'image/svg+xml', markFile),
  }
}

export function serveAssets(app: Hono<PageVariables>, assets: Assets): void {
  for (const { path, type, body } of Object.values<Asset>({ ...assets })) {
    app.get(path, c =>
      c.body(body, 200, { 'Content-Type': type, 'Cache-Control': `${publicFor(YEAR_SECONDS)}, immutable` }),
    )
  }
}

/** Without indentation and lines that are comments, which are a third of it. */
function read(name: string): string {
  const lines = readFileSync(new URL(name, import.meta.url), 'utf8').split('\n')
  return lines
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('//') && !/^\/\*.*\*\/$/.test(line))
    .join('\n')
}

function toAsset(path: string, type: string, body: string): Asset {
  const version = createHash('sha256').update(body).digest('base64url').slice(0, 10)
  return { path, url: `${path}?v=${version}`, type, body }
}
