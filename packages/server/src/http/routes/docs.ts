import { z } from 'zod'
import { publicFor } from '../../cache-control.ts'
import { DOCS_CONTENT_SECURITY_POLICY } from '../docs-page.ts'
import { type Route, route } from '../route.ts'

export interface DocsOptions {
  openApi: () => unknown
  docs: () => string
}

const TAG = 'Service'

/** The API documentation, as OpenAPI and as HTML; each is generated and encoded on its first request. */
export function docsRoutes({ openApi, docs }: DocsOptions): Route[] {
  let openApiText: Buffer<ArrayBuffer> | null = null
  let docsText: Buffer<ArrayBuffer> | null = null

  return [
    route({
      method: 'GET',
      path: '/openapi.json',
      operation: 'getOpenApi',
      tag: TAG,
      summary: 'This document (OpenAPI 3.1)',
      description: 'Generated from the route table and the schemas that validate.',
      access: 'public',
      answers: [
        { status: 200, description: 'The document.', schema: z.looseObject({ openapi: z.string() }) },
      ],
      errors: [],
      handle() {
        openApiText ??= Buffer.from(JSON.stringify(openApi()))
        return { status: 200, body: openApiText, headers: { 'Cache-Control': publicFor(60) } }
      },
    }),
    route({
      method: 'GET',
      path: '/docs',
      operation: 'getDocs',
      tag: TAG,
      summary: 'The API documentation as a web page',
      description: 'Every call with an example, its responses and its errors.',
      access: 'public',
      answers: [{ status: 200, description: 'The page.', schema: z.string(), type: 'text/html' }],
      errors: [],
      handle() {
        docsText ??= Buffer.from(docs())
        const headers = { 'Content-Security-Policy': DOCS_CONTENT_SECURITY_POLICY }
        return { status: 200, body: docsText, type: 'text/html; charset=utf-8', headers }
      },
    }),
  ]
}
