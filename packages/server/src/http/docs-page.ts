import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'
import { accessNote, errorCodesOf } from './openapi.ts'
import type { Route } from './route.ts'

type Html = ReturnType<typeof html>

const STYLE = `
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }
h3 { margin-top: 2.5rem; border-top: 1px solid; padding-top: 1rem }
code, pre { font: .875rem/1.5 ui-monospace, monospace }
pre { overflow-x: auto; border: 1px solid; padding: .75rem; border-radius: .25rem }
`

/** Allows the inline style only: no script, no image, no other origin. */
export const DOCS_CONTENT_SECURITY_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'; base-uri 'none'`

/** The API documentation as HTML, generated from the route table. */
export function docsPage(
  routes: readonly Route[],
  { publicUrl, version }: { publicUrl: string; version: string },
): string {
  const tags = [...Map.groupBy(routes, route => route.tag)]
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Keyway API</title>
<style>${raw(STYLE)}</style>
</head>
<body>
<main>
<h1>Keyway API</h1>
<p>Version ${version}, at <code>${publicUrl}</code>. For programs: <a href="/openapi.json">/openapi.json</a>.</p>
<p>Bodies are JSON. Errors are <code>application/problem+json</code> with a stable <code>code</code>. Access tokens and API keys go into <code>Authorization: Bearer …</code>, never into a URL.</p>
<nav aria-label="Operations"><ul>${tags.map(([, declared]) => declared.map(entry))}</ul></nav>
${tags.map(([tag, declared]) => html`<h2>${tag}</h2>${declared.map(route => section(route, publicUrl))}`)}
</main>
</body>
</html>
`)
}

function entry({ operation, method, path, summary }: Route): Html {
  return html`<li><a href="#${operation}">${summary}</a> <code>${method} ${path}</code></li>
`
}

function section(route: Route, publicUrl: string): Html {
  const codes = errorCodesOf(route)
  return html`<h3 id="${route.operation}">${route.summary}</h3>
<p><code>${route.method} ${route.path}</code></p>
<p>${route.description}${accessNote(route)}</p>
<pre tabindex="0"><code>${curl(route, publicUrl)}</code></pre>
${route.answers.map(
  ({ status, description, example }) => html`<p>${status}: ${description}</p>
${example === undefined ? '' : html`<pre tabindex="0"><code>${JSON.stringify(example, null, 2)}</code></pre>`}`,
)}
<p>Errors: ${codes.map(code => html`<a href="/errors/${code}"><code>${code}</code></a> `)}</p>
`
}

function curl({ method, path, access, example, idempotencyKey }: Route, publicUrl: string): string {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}'${publicUrl}${path}'`]
  if (access === 'app') lines.push(`-u "$APP_ID:$APP_SECRET"`)
  else if (access !== 'public') lines.push(`-H "Authorization: Bearer $TOKEN"`)
  if (idempotencyKey) lines.push(`-H 'Idempotency-Key: u5d1Zp8yQm4kR0vT2xWc'`)
  if (example !== undefined)
    lines.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(example)}'`)
  return lines.join(' \\\n  ')
}
